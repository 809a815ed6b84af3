/** Tokens of an image or a file, roughly. */
const fileTokens = 1_000
/** Bytes of text that are counted as a token. Most tokenizers make longer ones of English and of code. */
const bytesPerToken = 3

/** Tokens of the text that tells a model how to call tools: 120 in the template of Qwen, which is a long one. */
const introductionTokens = 120

/** The types of parts that are images, audio or files, in the forms of Anthropic and of chat completions. */
const fileTypes = new Set<unknown>(['base64', 'url', 'file', 'image_url', 'input_audio'])

/** Returns an estimate of the tokens of a conversation, of a chat or in Anthropic's form. Its size bounds the work. */
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
      if (fileTypes.has(type)) files++
      else
        for (const [name, member] of Object.entries(value)) {
          bytes += name.length
          add(member)
        }
    }
  }
  for (const part of [system, messages, tools]) add(part)
  const introduction = Array.isArray(tools) && tools.length > 0 ? introductionTokens : 0
  return Math.max(1, Math.ceil(bytes / bytesPerToken)) + files * fileTokens + introduction
}
