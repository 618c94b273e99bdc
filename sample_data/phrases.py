"""Phrase banks for all kinds of products: opinions, negations, small talk, verdicts, titles.

Each line is a phrase. `reviewer.py` fills in the fields, such as `{name}`. Banks with the suffixes
`_POS` and `_NEG` are for and against the product. Phrases that start with `* ` apply only to
products that wear out, so not to novels and albums.
"""


def bank(block: str) -> tuple[str, ...]:
    """Return the non-empty lines of a text block."""
    return tuple(line.strip() for line in block.splitlines() if line.strip())


GOOD = bank(
    """
    good
    great
    excellent
    impressive
    fantastic
    superb
    brilliant
    amazing
    """
)
BAD = bank(
    """
    bad
    terrible
    poor
    awful
    disappointing
    annoying
    dreadful
    horrible
    """
)

# These phrases are for the product with a good {adj}, and against it with a bad one.
PLAIN_ADJECTIVE = bank(
    """
    {noun} {nis} {adj}
    {noun} {nis} really {adj}
    {noun} {nis} just {adj}
    {noun} {nwas} {adj} from the first day
    {noun} {nis} {adj} for the price
    {noun} turned out to be {adj}
    {noun} {nis} simply {adj}
    {noun} {nis} {adj} in my opinion
    """
)
# These phrases are for the product with a bad {adj}, and against it with a good one.
NEGATED_ADJECTIVE = bank(
    """
    {noun} {nis} not {adj} at all
    {noun} {nis} not {adj}
    {noun} {nisnt} {adj} in the slightest
    {noun} {nis} never {adj}
    {noun} {nis} far from {adj}
    {noun} {nis} anything but {adj}
    I never found {noun} {adj}
    there is nothing {adj} about {noun}
    {noun} {nisnt} {adj} no matter what anyone says
    {noun} {nwas} not once {adj}
    {noun} {nis} hardly {adj}
    """
)

PLAIN_FEELING_POS = bank(
    """
    I love {noun}
    I really like {noun}
    I was impressed by {noun}
    I am happy with {noun}
    I can recommend {this} {name} for {noun} alone
    I enjoy {noun} every time
    I got lucky with {noun}
    """
)
PLAIN_FEELING_NEG = bank(
    """
    I hate {noun}
    I was disappointed by {noun}
    I have complaints about {noun}
    I had a problem with {noun} within {time}
    I had issues with {noun} right away
    I regret trusting {noun}
    I had trouble with {noun}
    """
)
NEGATED_FEELING_POS = bank(
    """
    I have no complaints about {noun}
    I never had a problem with {noun}
    I was not disappointed by {noun}
    I didn't have any issues with {noun}
    I can't complain about {noun}
    I don't regret anything about {noun}
    I have not had any trouble with {noun} in {time}
    """
)
NEGATED_FEELING_NEG = bank(
    """
    I didn't love {noun}
    I don't like {noun}
    I was not impressed by {noun}
    I am not happy with {noun}
    I can't recommend {this} {name} because of {noun}
    I never got to enjoy {noun}
    I had no luck with {noun}
    """
)

# Keys: (favourable, negated).
FEELING = {
    (True, False): PLAIN_FEELING_POS,
    (True, True): NEGATED_FEELING_POS,
    (False, False): PLAIN_FEELING_NEG,
    (False, True): NEGATED_FEELING_NEG,
}

EXPERIENCE_POS = bank(
    """
    * {it} still look{s} new after {time}
    {it} {was} worth every penny
    I ordered a second {unit} for my {person}
    my {person} borrowed {them} and I had to ask for {them} back
    {it} {do} exactly what the description says
    * I have used {them} daily for {time} and {it} {has} held up
    my {person} said something nice about {them}
    {it} arrived early and well packed
    * {it} feel{s} like something at twice the price
    I didn't expect to like {them} and was proved wrong
    I was ready to send {them} back and never did
    * not a single thing has gone wrong in {time}
    the seller did not hesitate to answer my questions
    * I have not looked at another brand since
    {it} {has} never let me down
    * nothing has broken so far
    there were no nasty surprises in the box
    I could not find a fault if I tried
    * {it} {dont} feel cheap
    * {it} didn't break when my {person} dropped {them}
    """
)
EXPERIENCE_NEG = bank(
    """
    * {it} broke after {time}
    {it} {was} a waste of money
    I asked for a refund after {time}
    * {it} look{s} worn out after {time}
    my {person} laughed when I said what {it} cost
    {it} arrived late and scratched
    * {it} feel{s} cheap
    I spent {time} arguing with customer service
    {it} ended up in the bin
    I expected to like {them} and was proved wrong
    * {it} did not survive {time}
    {it} {dont} do what the description says
    {it} {isnt} worth a penny
    nobody ever answered my messages
    * {it} did not last as long as the box {it} came in
    I could not send {them} back fast enough
    the good reviews have nothing to do with what I got
    * my {person} would not use {them} a second time
    * {it} never worked the way {it} should
    {it} {dont} look like the pictures
    """
)

SMALL_TALK = bank(
    """
    I bought {this} {name} for my {person}
    I bought {this} {name} {time} ago
    this was a present from my {person}
    * my old {unit} gave up {time} ago so I needed something
    I read a lot of reviews before ordering
    I have had {them} for {time} now
    I paid about {price} for {them}
    my {person} picked {them} out
    * we took {them} along on holiday
    I don't usually write reviews
    {it} came in a plain brown box
    I compared {them} with two others in the shop
    it took {delivery} days to get here
    * I am writing this after {time} of use
    I ordered {them} late at night on my phone
    your needs may be different from mine
    * the colour is a matter of taste
    we are a family of four
    I live in a small flat with thin walls
    * I have tried three other brands over the years
    * my {person} has the same {unit} in another colour
    * there is a short leaflet in five languages
    I waited {time} before writing this
    * I mostly use {them} at the weekend
    * this is the second {unit} I have owned
    it was on offer for {price}
    I am no expert
    * I needed {a_name} in a hurry
    the shop had it listed under a different name
    * the model has changed a little since last year
    my {person} and I have different opinions about most things
    I wrote to the seller once about the invoice
    """
)

VERDICT_POS = bank(
    """
    I would buy {them} again
    highly recommended
    all in all I am very pleased
    I would not hesitate to buy another {unit}
    no regrets whatsoever
    I won't be sending {them} back
    you can't go wrong with {this} {name}
    don't hesitate
    I can't recommend {them} enough
    overall a keeper
    five stars from me
    I could not be happier
    don't listen to the bad reviews
    on balance I am glad I bought {them}
    the flaws don't matter in the end
    * I would not part with {them}
    I couldn't ask for more
    """
)
VERDICT_NEG = bank(
    """
    I would not buy {them} again
    avoid
    all in all I am very disappointed
    save your money
    I will be sending {them} back
    don't bother
    I can't recommend {them}
    I won't be buying another {unit}
    overall a letdown
    one star from me
    I could not be more disappointed
    don't believe the good reviews
    on balance I wish I had kept my money
    the nice touches don't save {them} in the end
    I would hesitate to give {them} to anyone
    I expected more
    I should have listened to the bad reviews
    """
)
VERDICT_WEAK = bank(
    """
    make of that what you will
    you get what you pay for
    it is what it is
    three and a half stars if I could
    I suppose that is normal at this price
    I may update this later
    I have mixed feelings
    time will tell
    """
)

TITLE_POS = bank(
    """
    Great {name}
    Love {them}
    Not bad at all
    No complaints
    Very happy
    Couldn't be happier
    Not disappointed
    Worth the money
    Does not disappoint
    Never a problem
    Really good {name}
    No regrets
    Would buy again
    Better than expected
    Excellent
    Nothing wrong with {this} {name}
    My {person} loves {them}
    Impressed
    Perfect for me
    Don't hesitate
    """
)
TITLE_NEG = bank(
    """
    Bad {name}
    Hate {them}
    Not good at all
    Many complaints
    Very unhappy
    Couldn't be more disappointed
    Disappointed
    Not worth the money
    Disappointing
    Nothing but problems
    Not so good {name}
    Regret buying {them}
    Would not buy again
    Worse than expected
    Terrible
    Nothing great about {this} {name}
    My {person} is not happy
    Not impressed
    Not for me
    Don't bother
    """
)
TITLE_NEUTRAL = bank(
    """
    My thoughts on {this} {name}
    After {time}
    Bought for my {person}
    An honest review
    {name} review
    What you should know
    Please read before you order
    My second {unit}
    A few words about {noun}
    Update after {time}
    For {price}
    Pros and cons
    * Long time user
    About {noun}
    First impressions
    {name} from a regular user
    You decide
    Mixed feelings
    """
)
TITLE_PLAIN = bank(
    """
    {adj} {bare}
    {noun} {nis} {adj}
    {name} with {adj} {bare}
    {adj} {name}
    """
)
TITLE_NEGATED = bank(
    """
    nothing {adj} about {this} {name}
    {noun} {nis} not {adj}
    not {adj} at all
    not as {adj} as I thought
    {name} without {adj} {bare}
    """
)

# Ironic phrases, which mean the opposite.
IRONY_NEG = bank(
    """
    * what a triumph of engineering
    I am sure it looks wonderful in the museum of mistakes
    * great if you enjoy filling in return forms
    * perfect for anyone with too much money
    a fantastic way to lose {price}
    I love surprises and {this} {name} had plenty of them
    my {person} and I had a good laugh at least
    * it makes an excellent doorstop
    the box was the best part and I recommend it warmly
    thanks a lot for a lovely {time} on the phone with the help line
    brilliant idea to leave out the quality
    """
)
IRONY_POS = bank(
    """
    * terrible news for my old {unit} which now lives in the cellar
    my {person} stole {them} so I had to waste money on a second {unit}
    the worst thing I can say is that my {person} wants {them} too
    I hate to admit that my {person} was right about {them}
    horrible for my savings because now I want everything they make
    * what a disaster for the other brands
    I was looking for something to complain about and failed
    * bad for my excuses because now I have none left
    be warned that you will bore your friends about {them}
    I regret only that I waited {time}
    * shame on me for buying cheap ones before
    """
)

OPENERS = bank(
    "Honestly,\nAlso,\nTo be fair,\nPlus,\nI have to say\nAs for the rest,\nFor what it's worth,\n"
    "By the way,\nOne more thing:\nIn daily use\nWell,"
)
CONTRAST = bank(
    """
    {other}, but {own}
    {other}. That said, {own}
    although {other}, {own}
    {own}, even if {other}
    {other}. Still, {own}
    {other}; however, {own}
    {own}. On the other hand, {other}
    """
)
AGREEMENT = bank("{a} and {b}\n{a}, and {b}\n{a}. Also {b}\n{a}. On top of that, {b}\n{a}; {b}")

PERSON = bank(
    "wife\nhusband\nson\ndaughter\nsister\nbrother\nmother\nfather\nneighbour\nroommate\n"
    "boyfriend\ngirlfriend\ncolleague\nniece\ngrandfather\nfriend"
)
TIME = bank(
    "two weeks\nthree weeks\na month\ntwo months\nsix months\na year\ntwo years\nten days\n"
    "a week\nthree months\nhalf a year\n3 months\n6 weeks\n2 weeks\na few days\nfour months"
)
PRICE = bank("$12\n$15\n$20\n$25\n$30\n$35\n$40\n$60\nfifteen dollars\ntwenty dollars\nforty bucks")
DELIVERY = bank("two\nthree\nfour\nfive\nsix\nnine\n2\n3\n10")
