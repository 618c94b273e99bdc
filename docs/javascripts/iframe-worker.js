// The search of the documentation runs in a worker. Browsers start no worker on a page that is opened as
// a file, so there the script of the worker runs in a hidden frame.
class FrameWorker extends EventTarget {
  #scope;
  #loaded;

  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.#scope = frame.contentWindow;
    this.#scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    // The script of the search awaits the result; in a worker the function returns after loading.
    this.#scope.importScripts = async (...urls) => {
      for (const each of urls) await this.#load(each);
    };
    this.#loaded = this.#load(url);
  }

  async postMessage(data) {
    await this.#loaded;
    this.#scope.dispatchEvent(new MessageEvent("message", { data }));
  }

  #load(url) {
    const script = this.#scope.document.createElement("script");
    script.src = new URL(url, document.baseURI);
    const loaded = new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} cannot be loaded`));
    });
    this.#scope.document.body.append(script);
    return loaded;
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
