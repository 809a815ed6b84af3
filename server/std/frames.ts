/** Streams of server-sent events are looked at as latin1 text, in which every byte is one character. */

/** The end of the last complete frame in the text, 0 when there is none. */
export function completeUntil(text: string): number {
  const unix = text.lastIndexOf('\n\n')
  const windows = text.lastIndexOf('\r\n\r\n')
  return Math.max(unix < 0 ? 0 : unix + 2, windows < 0 ? 0 : windows + 4)
}
