/** Tokens of an image or a file, roughly. */
const fileTokens = 1_000
/** Bytes of text that are counted as a token. Most tokenizers make longer ones of English and of code. */
const bytesPerToken = 3

/** Returns an estimate of the tokens of a conversation in Anthropic's form. Its size is bounded by that of the body. */
export function promptTokens({
  system,
  messages,
  tools,
}: {
  system?: unknown
  messages: readonly unknown[]
  tools?: unknown
}): number {
  let bytes = 0
  let files = 0
  const add = (value: unknown): void => {
    if (typeof value === 'string') bytes += Buffer.byteLength(value)
    else if (typeof value === 'number' || typeof value === 'boolean') bytes += String(value).length
    else if (Array.isArray(value)) value.forEach(add)
    else if (value !== null && typeof value === 'object') {
      const { type } = value as { type?: unknown }
      if (type === 'base64' || type === 'url' || type === 'file') files++
      else
        for (const [name, member] of Object.entries(value)) {
          bytes += name.length
          add(member)
        }
    }
  }
  for (const part of [system, messages, tools]) add(part)
  return Math.max(1, Math.ceil(bytes / bytesPerToken)) + files * fileTokens
}
