/**
 * Returns the start of the stop string that completes first (of two that complete at the same position, the longer), or
 * −1. The end of the match decides, so that the result does not depend on how the text was divided.
 */
export function stopAt(text: string, stops: readonly string[]): number {
  let start = -1
  let end = Number.POSITIVE_INFINITY
  for (const stop of stops) {
    const found = text.indexOf(stop)
    if (found < 0) continue
    const foundEnd = found + stop.length
    if (foundEnd < end || (foundEnd === end && found < start)) {
      start = found
      end = foundEnd
    }
  }
  return start
}

/** Length of the longest suffix of the text that is a prefix of a stop string. */
export function heldBack(text: string, stops: readonly string[]): number {
  let held = 0
  for (const stop of stops)
    for (let length = Math.min(stop.length - 1, text.length); length > held; length--)
      if (text.endsWith(stop.slice(0, length))) held = length
  return held
}

/**
 * Converts the bytes of tokens to text that may be sent. Holds back incomplete characters and possible prefixes of a
 * stop string; invalid UTF-8 becomes U+FFFD. The joined text does not depend on how the bytes were divided. `stops` are
 * not empty and well-formed; with `dropFirstSpace` a space before the first word comes from the tokenizer.
 */
export function openText(stops: readonly string[], dropFirstSpace: boolean) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let held = ''
  let stopped = false
  let atStart = dropFirstSpace
  let length = 0

  const take = (fresh: string): string => {
    if (stopped || fresh === '') return ''
    if (atStart && fresh.startsWith(' ')) fresh = fresh.slice(1)
    atStart = false
    length += fresh.length
    const text = held + fresh
    const cut = stopAt(text, stops)
    if (cut >= 0) {
      stopped = true
      held = ''
      return text.slice(0, cut)
    }
    const sure = text.length - heldBack(text, stops)
    held = text.slice(sure)
    return text.slice(0, sure)
  }

  return {
    /** Adds the bytes of the next token and returns the text that can be sent. */
    push: (bytes: Uint8Array): string => take(decoder.decode(bytes, { stream: true })),
    /** Returns the remaining text after the last token. */
    end(): string {
      const last = take(decoder.decode())
      if (stopped) return last
      const rest = last + held
      held = ''
      return rest
    },
    /** Characters so far, including those held back. */
    get length(): number {
      return length
    },
    /** Whether a stop string was found; later text is ignored. */
    get stopped(): boolean {
      return stopped
    },
  }
}
