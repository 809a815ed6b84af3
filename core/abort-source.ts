/** Tells listeners that a caller has disconnected. Every AbortSignal fulfils it. */
export interface CallerSignal {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once: true }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * A minimal AbortController. The real one takes 2 KB and several microseconds with one listener: too much for an object
 * that every request needs and few requests use. Listeners are called once, in the order in which they were added.
 */
export class AbortSource implements CallerSignal {
  aborted = false
  reason: unknown
  #listeners: (() => void)[] = []

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (let next = this.#listeners.shift(); next; next = this.#listeners.shift()) next()
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.aborted && !this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at >= 0) this.#listeners.splice(at, 1)
  }
}
