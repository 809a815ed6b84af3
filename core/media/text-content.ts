const decoder = new TextDecoder('utf-8', { fatal: true })
// oxlint-disable-next-line no-control-regex
const binary = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f]/

/** Returns the text of a file; undefined if it is none: not UTF-8, with control characters, or a PDF. Pure. */
export function textContent(bytes: Uint8Array): string | undefined {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return undefined
  }
  return binary.test(text) || text.startsWith('%PDF-') ? undefined : text
}

/** Returns a file as a part of a message. */
export const fileAsText = (name: string, text: string): string => `File ${name}:\n\n${text}`
