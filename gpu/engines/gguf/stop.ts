/**
 * Where the text ends because of a stop string: the start of the one that is complete first (of two that are complete
 * at the same place, the longer), or −1. Defined by where a match ends, so that the answer does not depend on how the
 * text arrived.
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

/** Length of the longest end of the text with which a stop string could begin. */
export function heldBack(text: string, stops: readonly string[]): number {
  let held = 0
  for (const stop of stops)
    for (let length = Math.min(stop.length - 1, text.length); length > held; length--)
      if (text.endsWith(stop.slice(0, length))) held = length
  return held
}

export interface TextOptions {
  /** Non-empty, well-formed strings. */
  stops: readonly string[]
  /** Whether a space before the first word comes from the tokenizer and not from the model. */
  dropFirstSpace?: boolean
}

/**
 * Turns the bytes of tokens into text that may be sent. Gives out no half character and nothing that may turn out to
 * be the beginning of a stop string; bytes that are no UTF-8 become U+FFFD. However the bytes are cut into pieces,
 * the parts that it gives out join to the same text.
 */
export function openText({ stops, dropFirstSpace = false }: TextOptions) {
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
    /** Takes the bytes of the next token and gives what is now sure. */
    push: (bytes: Uint8Array): string => take(decoder.decode(bytes, { stream: true })),
    /** The rest, when no token follows. */
    end(): string {
      const last = take(decoder.decode())
      if (stopped) return last
      const rest = last + held
      held = ''
      return rest
    },
    /** Characters so far, those that are held back among them. */
    get length(): number {
      return length
    },
    /** Whether a stop string has come: what follows is of no interest. */
    get stopped(): boolean {
      return stopped
    },
  }
}
