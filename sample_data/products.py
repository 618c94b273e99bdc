"""The products of the synthetic reviews: kinds of products, their aspects and phrases about them.

Each kind is a text block. An aspect starts with a line
`the noun [(are)]: praise words; complaint words`. The `+` and `-` lines that follow are clauses for
and against it. `~` lines are neutral facts.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

_ASPECT = re.compile(r"(?P<noun>[^:(]+?)(?P<plural> \(are\))?: (?P<praise>.+); (?P<complaint>.+)")


@dataclass(frozen=True)
class Aspect:
    """A part or property of a product, with words and clauses for and against it."""

    noun: str
    plural: bool
    praise: tuple[str, ...]
    complaint: tuple[str, ...]
    pros: tuple[str, ...]
    cons: tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of product. `unit` is the word for one of them: one, pair, copy."""

    name: str
    article: str
    unit: str
    plural: bool
    wears_out: bool
    aspects: tuple[Aspect, ...]
    facts: tuple[str, ...]


def _aspect(lines: list[str]) -> Aspect:
    match = _ASPECT.fullmatch(lines[0])
    if match is None:
        raise ValueError(f"not an aspect line: {lines[0]!r}")
    return Aspect(
        noun=match["noun"],
        plural=match["plural"] is not None,
        praise=tuple(match["praise"].split(", ")),
        complaint=tuple(match["complaint"].split(", ")),
        pros=tuple(line[2:] for line in lines if line.startswith("+ ")),
        cons=tuple(line[2:] for line in lines if line.startswith("- ")),
    )


def _kind(name: str, article: str, block: str, unit: str = "one", plural: bool = False) -> Kind:
    lines = block.strip().splitlines()
    starts = [i for i, line in enumerate(lines) if line[0] not in "+-~"]
    groups = [lines[a:b] for a, b in pairwise([*starts, len(lines)])]
    facts = tuple(line[2:] for line in lines if line.startswith("~ "))
    aspects = tuple(_aspect(group) for group in groups)
    return Kind(name, article, unit, plural, unit != "copy", aspects, facts)


KINDS: tuple[Kind, ...] = (
    _kind(
        "headphones",
        "a pair of headphones",
        """
the sound: crisp, rich, balanced; muddy, tinny, harsh
+ I keep hearing little details in songs I thought I knew by heart
+ voices come through as if the singer sat across the table
- the bass swallows everything else in the song
- every track sounds like it is played from inside a bucket
the battery: long lasting, dependable; weak, short lived
+ I charge them on Sunday and forget about it until the next weekend
+ one charge got me across the ocean and back
- the battery gives up before lunch
- by the second month one charge barely covered a single film
the ear cushions (are): soft, comfortable, roomy; stiff, sweaty, scratchy
+ I wear them through an eight hour shift and hardly notice
+ the padding sits gently even over my glasses
- my ears ache after half an hour
- the fake leather is flaking off onto my collar
the noise cancelling: effective, clever; patchy, noisy
+ the engine hum on the bus simply disappears
+ the office chatter fades to a whisper
- it cancels about as much noise as a woolly hat
- there is a constant hiss in quiet rooms
the pairing: quick, painless; fiddly, unstable
+ they hop from laptop to phone without any fuss
- the connection drops every time I put the phone in my pocket
- the left side cuts out in the middle of calls
~ I mostly listen to podcasts on the train
~ I wear them for video calls and in the gym
~ I use them with an older laptop and a newer phone
~ they come with a short cable and a cloth bag
""",
        unit="pair",
        plural=True,
    ),
    _kind(
        "kettle",
        "a kettle",
        """
the lid: sturdy, snug, smooth; loose, stiff, wobbly
+ the lid closes with a firm click every time
+ the wide opening lets me get a whole hand in to clean it
- the lid pops open while the water is still boiling
- the hinge on the lid snapped like a dry twig
the spout: precise, neat; messy, drippy
+ it pours in a thin steady stream right where I want it
- it dribbles down the side and floods the counter
- half of the water ends up next to the cup
the heating: fast, quick, even; slow, sluggish
+ two cups are boiling before I have found the tea bags
+ it switches itself off the second it boils
- I could drive to a café in the time it takes to boil
- it keeps boiling and boiling until I pull the plug
the inside: clean, spotless; rusty, grimy
+ after months of hard water there is still no scale to speak of
- brown spots of rust showed up around the base
- everything I drink from it tastes of plastic
the handle: cool, comfortable; hot, slippery
+ the handle stays cool even when it is filled to the top
- the handle gets so hot that I need an oven glove
~ we drink tea about six times a day here
~ it holds a bit over a litre and a half
~ it sits between the toaster and the bread bin
~ the cord is about as long as my forearm
""",
    ),
    _kind(
        "novel",
        "a novel",
        """
the plot: gripping, clever, original; predictable, thin, silly
+ I stayed up until three because I had to know who did it
+ the twist in the last third made me gasp on a full train
- I guessed the ending by page forty
- nothing happens for two hundred pages and then it stops
the characters (are): believable, memorable, warm; flat, wooden, irritating
+ I miss these people now that I have closed the book
+ the grandmother alone is worth the price
- everybody talks in the same clever voice
- I could not tell the two brothers apart and stopped trying
the writing: elegant, vivid, funny; clumsy, dull, overwrought
+ there were sentences I read aloud just for the pleasure of it
- whole paragraphs read like a user manual
- the author never uses one adjective where five will fit
the ending: satisfying, moving, surprising; rushed, abrupt, confusing
+ the last page had me in tears in the best way
- the ending feels as if somebody ran out of paper
- too many threads are simply dropped at the end
the pacing: brisk, steady; slow, uneven
+ the chapters fly by
- I put it down four times and had to force myself back
~ it is set in a small harbour town between the wars
~ our book club read it in March
~ I listened to half of it and read the other half
~ I have read two others by the same author
""",
        unit="copy",
    ),
    _kind(
        "phone case",
        "a phone case",
        """
the fit: snug, exact, precise; loose, sloppy, tight
+ it clicks on like it was poured around the phone
+ every cut-out lines up with its port
- the corners lift off whenever I pull it out of my jeans
- the camera hole is half a finger too low
the grip: secure, reassuring; slippery, sticky
+ it stays put on the dashboard and in wet hands
- it slides off the arm of the sofa like a bar of soap
- it picks up every crumb in my pocket
the protection: solid, tough; flimsy, thin
+ my phone fell down a flight of stone steps without a scratch
+ the raised edge has already saved the screen twice
- the first drop cracked my screen from corner to corner
- it is as protective as a sheet of paper
the colour: vivid, pretty, lasting; faded, yellowed, dull
+ the blue is exactly as shown in the pictures
- the clear back turned yellow within weeks
- the print rubbed off onto my fingers
the buttons (are): clicky, responsive; stiff, mushy
+ the volume keys press as easily as without it
- I have to push the power button with both thumbs
~ my phone is two years old now
~ I change cases about twice a year
~ it ships in a flat cardboard sleeve
~ there is a small loop for a wrist strap
""",
    ),
    _kind(
        "running shoes",
        "a pair of running shoes",
        """
the cushioning: springy, soft, plush; hard, dead, lumpy
+ my knees stopped hurting on the long Sunday run
+ the foam still bounces after four hundred miles
- the foam went flat after a dozen runs
- it feels like running on the bare pavement
the fit: roomy, secure, comfortable; narrow, sloppy, painful
+ my toes finally have space to spread out
- they run a full size small and pinch at the toes
- I came home with blisters on both heels
the sole: grippy, durable; slick, fragile
+ they hold on to wet leaves and gravel like glue
- the tread is bald already and I only run twice a week
- the sole started peeling away at the toe
the upper: breathable, light; hot, stiff
+ my feet stay dry even in July
- the mesh tore right where the little toe bends
the laces (are): secure, sturdy; short, slippery
+ once tied they stay tied until I am back home
- I stop every mile to tie them again
~ I run about twenty miles a week on roads and towpaths
~ I am training for a half marathon in autumn
~ I have flat feet and wear a size nine
~ I rotate them with an older pair
""",
        unit="pair",
        plural=True,
    ),
    _kind(
        "vacuum",
        "a vacuum",
        """
the suction: powerful, strong, steady; weak, feeble, patchy
+ the amount of dog hair it pulled from one rug was frightening
+ it lifts sand out of the mats in a single pass
- it pushes the crumbs around instead of picking them up
- I have to go over the same spot five times
the battery: generous, lasting; short, unreliable
+ I can do both floors and the stairs on one charge
- it dies halfway up the stairs
- it needs a whole night to charge for ten minutes of cleaning
the dust bin: roomy, handy; tiny, fiddly
+ it empties with one click and no cloud of dust
- emptying it throws half of the dust back into the room
- the bin fills up before one room is done
the noise: quiet, gentle; loud, shrill
+ the cat sleeps right through it
- the neighbours can hear me cleaning
- it screams like a small jet
the hose: flexible, long; stiff, short
+ it reaches under the beds without moving anything
- the hose split at the joint
- the brush stops whenever it meets a hair
~ we have two long haired cats and wooden floors
~ our flat has three rooms and one big rug
~ it stands in the cupboard under the stairs
~ it comes with a narrow nozzle and a wide brush
""",
    ),
    _kind(
        "board game",
        "a board game",
        """
the rules (are): clear, simple, elegant; confusing, vague, contradictory
+ we were playing ten minutes after opening the box
+ the children explained the rules to their grandparents
- three adults could not agree on what page two means
- we spent the whole evening arguing about the rule book
the artwork: gorgeous, charming, colourful; ugly, bland, garish
+ I caught everyone turning over the cards just to look at them
- the red and the orange pieces look exactly alike
- the board looks like a spreadsheet
the pieces (are): chunky, sturdy, detailed; flimsy, thin, warped
+ the wooden pieces feel lovely in the hand
- the cards were bent after one evening
- two of the little houses were missing from the bag
the replay value: endless, high; low, limited
+ we have played every weekend and no two games were alike
+ everybody asked for another round straight away
- once you have seen the cards there is no reason to play again
- the same person wins every time
the length: ideal, reasonable; exhausting, excessive
+ a round fits neatly between dinner and bedtime
- it drags on for an hour after the winner is obvious
~ we usually play with four people
~ we play games most Friday nights
~ the box says ten and up
~ our shelf already holds about thirty games
""",
    ),
    _kind(
        "blender",
        "a blender",
        """
the blades (are): sharp, powerful; dull, useless
+ frozen mango turns to silk in under a minute
+ ice and stringy spinach disappear without a trace
- it leaves lumps of banana the size of dice
- the motor smells of burning whenever it meets ice
the jug: sturdy, generous, elegant; flimsy, cloudy, leaky
+ the jug has survived two falls onto a tiled floor
- the jug leaks from the bottom all over the counter
- a crack ran up the side the third time I used it
the noise: quiet, bearable; deafening, loud
+ I can make breakfast while the baby sleeps
- it wakes the whole house at six in the morning
the cleaning: easy, quick; tedious, awkward
+ a drop of soap and a ten second spin and it is clean
- bits of food get stuck under the blades for ever
- you need a toothbrush to get under the seal
the lid: tight, secure; loose, stiff
+ the lid stays shut with one finger on top
- the lid flew off and I repainted the ceiling in soup
- the rubber ring slipped out in the first week
~ I make a smoothie most mornings before work
~ we use it for soup in winter
~ it has two speeds and a pulse button
~ it just fits under the wall cupboard
""",
    ),
    _kind(
        "backpack",
        "a backpack",
        """
the straps (are): padded, comfortable, strong; thin, scratchy, stiff
+ my shoulders felt fine after a whole day with a loaded bag
- one strap tore out at the seam on the way to school
- the straps cut into my shoulders after ten minutes
the zips (are): smooth, sturdy; sticky, flimsy
+ the zips glide even when it is stuffed to bursting
- the zip came off in my hand
- the main zip splits open behind the slider
the pockets (are): handy, clever, generous; tiny, useless, awkward
+ there is a place for the laptop, the bottle and the keys
+ the hidden pocket at the back is perfect for a passport
- no pocket is big enough for an ordinary bottle
the fabric: tough, waterproof; thin, leaky, smelly
+ I walked home in a storm and the papers stayed dry
- the first rain soaked my notebooks
- it smelled of petrol for a month
the size: ideal, generous; small, bulky
+ everything for four days went in with room to spare
- a lunch box and a jumper and it is full
~ I carry it to work on the bike
~ my son takes it to school every day
~ it came along on a week in the mountains
~ I am tall and carry a fifteen inch laptop
""",
    ),
    _kind(
        "desk lamp",
        "a desk lamp",
        """
the light: warm, bright, even; harsh, dim, flickering
+ I can read small print at night without squinting
+ it lights the whole desk and leaves no glare on the screen
- it flickers just enough to give me a headache
- it is about as bright as a birthday candle
the arm: smooth, sturdy, flexible; floppy, stiff, wobbly
+ the arm stays exactly where I put it
- the arm sinks slowly until it rests on my keyboard
- the joint loosened and no screw will hold it
the base: heavy, stable; light, unsteady
+ it stands like a rock even on a crowded desk
- it tips over if you look at it too hard
the dimmer: smooth, sensitive; jumpy, unresponsive
+ there is a setting for every hour of the evening
- touching the switch does nothing four times out of five
- it turns itself on in the middle of the night
the bulb: lasting, efficient; fragile, costly
+ I am still on the first bulb
- the bulb burned out and cannot be replaced
~ I work from a corner of the bedroom
~ my daughter does her homework under it
~ the cable is a little under two metres long
~ it comes in black, white and a pale green
""",
    ),
    _kind(
        "dog toy",
        "a dog toy",
        """
the rubber: tough, thick, durable; thin, brittle, smelly
+ it has outlived every ball and rope in the basket
+ our shepherd chews it daily and there is hardly a mark on it
- it was in forty pieces before I had thrown away the box
- he bit off an ear in the first five minutes
the squeaker: fun, lively; annoying, shrill, broken
+ one squeak and she comes running from the garden
- the squeaker died on the first evening
- the noise goes through two closed doors
the size: ideal, sensible; tiny, clumsy
+ it is just right for a small mouth
- it is so small that I was afraid he would swallow it
the rope: strong, soft; frayed, weak
+ we play tug every evening and the knots are still tight
- I find bits of the rope all over the house
- the rope came undone and he swallowed a thread
the fun: endless, simple; brief, missing
+ she carries it to bed like a puppy
+ he brings it to every visitor
- she sniffed it once and went back to her old sock
- it has been lying untouched under the sofa
~ our dog is a two year old terrier
~ she is a heavy chewer with strong jaws
~ we have two dogs of very different sizes
~ he gets a new toy about once a month
""",
    ),
    _kind(
        "yoga mat",
        "a yoga mat",
        """
the grip: firm, secure; slippery, slick
+ my hands stay planted even when I am dripping with sweat
- my feet slide apart in every standing pose
- it wanders across the floor as soon as I move
the padding: thick, soft, supportive; thin, hard, lumpy
+ my bad knee does not complain any more
- I feel every gap between the floorboards
- the foam shows dents that never come out
the smell: neutral, faint; strong, chemical, nasty
+ it smelled of nothing at all right out of the wrapping
- it stinks of tyres even after a month on the balcony
the surface: smooth, clean, durable; crumbly, sticky, patchy
+ it wipes clean with a damp cloth and looks like new
- little black crumbs stick to my clothes
- the top layer peels off where my heels go
the strap: handy, sturdy; short, useless
+ it rolls up tight and hangs from one shoulder
- the carrying strap came unstitched on the way to class
~ I practise three mornings a week
~ I take it to a class in the park
~ mine is the dark green one
~ I am a beginner and follow videos at home
""",
    ),
    _kind(
        "rain jacket",
        "a rain jacket",
        """
the fabric: waterproof, light, tough; leaky, noisy, clammy
+ two hours of solid rain and my shirt was dry
+ the drops just roll off
- the shoulders were wet through within ten minutes
- it crackles like a bag of crisps at every step
the hood: generous, snug; shallow, floppy
+ the hood turns with my head instead of hiding the traffic
- the first gust blows the hood straight off
- the hood falls over my eyes
the zip: smooth, sturdy; stubborn, weak
+ the zip works even with thick gloves on
- the zip jams on the lining every single morning
the cut: flattering, roomy, neat; boxy, tight, shapeless
+ it fits over a thick jumper and still looks smart
- the sleeves end well above my wrists
- it fits like a tent
the seams (are): tidy, tight; crooked, loose
+ every seam is taped and straight
- water creeps in along the seams
- the stitching at the pocket came apart
~ I cycle to work in all weathers
~ I wear a medium and am quite broad in the shoulders
~ I took it on a walking holiday in the north
~ it folds into its own pocket
""",
    ),
    _kind(
        "album",
        "an album",
        """
the songs (are): catchy, inventive, heartfelt; forgettable, repetitive, shallow
+ I have been humming the second track for a week
+ there is no song on it that I skip
- ten songs and I could not hum one of them
- every chorus sounds like the one before
the singing: soulful, tender, confident; shaky, flat, lifeless
+ her voice gives me goosebumps from the first line
- he sounds half asleep all the way through
the production: polished, spacious; overdone, muddy, harsh
+ you can hear fingers moving on the strings
- somebody has buried the guitars under layers of synths
- it is mixed so loud that it tires me out
the lyrics (are): witty, honest, moving; lazy, corny, empty
+ the words stay with me long after the music stops
- the rhymes could come from a greeting card
the pressing: flawless, quiet; warped, scratchy
+ the vinyl is silent between the tracks
- my record skips on both sides
- the sleeve came with a split corner
~ I saw the band live some years ago
~ it runs a little over forty minutes
~ I bought it on vinyl for the big stereo
~ I usually play it while cooking
""",
        unit="copy",
    ),
)
