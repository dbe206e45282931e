// Browsers start no workers for pages in folders. There, the search runs in a hidden frame, which speaks as a worker does.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((ready) => {
        frame.onload = () => {
          frame.onload = null;
          this.inside = frame.contentWindow;
          this.inside.postMessage = (data) => this.#receive(data);
          this.inside.importScripts = () => undefined;
          const script = this.inside.document.createElement("script");
          script.src = url;
          script.onload = ready;
          this.inside.document.body.append(script);
        };
      });
      document.documentElement.append(frame);
    }
    #receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      this.ready.then(() => {
        const event = new this.inside.MessageEvent("message", { data });
        this.inside.dispatchEvent(event);
      });
    }
    terminate() {}
  };
