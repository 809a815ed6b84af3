import type { LlamaModel, Token } from 'node-llama-cpp'

export type PieceKind = 'normal' | 'byte' | 'user' | 'control'
/** How a vocabulary writes its pieces down: with '▁' for a space, or in the printable alphabet of GPT-2. */
export type PieceForm = 'spaces' | 'gpt2'

/**
 * The 256 bytes as the printable characters in which GPT-2's vocabulary, and all that came after it, writes them.
 * Source: bytes_to_unicode() in OpenAI's gpt-2 encoder.
 */
const gpt2Bytes: ReadonlyMap<string, number> = (() => {
  const map = new Map<string, number>()
  let next = 256
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    map.set(String.fromCodePoint(printable ? byte : next++), byte)
  }
  return map
})()

/**
 * The bytes that a token stands for in a text, from the way the vocabulary writes it: what llama.cpp's own
 * token_to_piece gives, which node-llama-cpp only offers as a string, where half a character is lost.
 */
export function pieceBytes(text: string, kind: PieceKind, form: PieceForm): Uint8Array {
  if (kind === 'control') return new Uint8Array()
  if (kind === 'byte') {
    const hex = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1]
    return hex === undefined ? Buffer.from(text) : Uint8Array.of(Number.parseInt(hex, 16))
  }
  if (kind === 'user') return Buffer.from(text)
  if (form === 'spaces') return Buffer.from(text.replaceAll('▁', ' '))
  const bytes: number[] = []
  for (const character of text) {
    const byte = gpt2Bytes.get(character)
    if (byte === undefined) bytes.push(...Buffer.from(character))
    else bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

const forms: Partial<Record<string, PieceForm>> = { spm: 'spaces', wpm: 'spaces', ugm: 'spaces', bpe: 'gpt2' }

export type Vocabulary = ReturnType<typeof openVocabulary>

/** What the engine needs to know of a model's tokens. */
export function openVocabulary(model: LlamaModel) {
  const { tokenizer } = model.fileInfo.metadata
  const texts = tokenizer.ggml.tokens
  const type: string = model.vocabularyType
  const form = forms[type]
  const cache: (Uint8Array | undefined)[] = []

  const kindOf = (token: Token): PieceKind => {
    const attributes = model.getTokenAttributes(token)
    if (attributes.control || attributes.unknown) return 'control'
    return attributes.byte ? 'byte' : attributes.userDefined ? 'user' : 'normal'
  }
  const piece = (token: Token): Uint8Array => {
    const text = texts[token]
    // Rare kinds of vocabulary come as llama.cpp writes them; only a character split over tokens suffers.
    if (form === undefined || text === undefined) return Buffer.from(model.detokenize([token]))
    return pieceBytes(text, kindOf(token), form)
  }

  return {
    size: texts.length,
    /** What a token says. A control token says nothing, but for those whose texts are in `shown`. */
    bytes(token: Token, shown?: readonly string[]): Uint8Array {
      const bytes = (cache[token] ??= piece(token))
      return shown !== undefined && bytes.length === 0 && shown.includes(texts[token] ?? '')
        ? Buffer.from(texts[token]!)
        : bytes
    },
    /** A token for people to read, where half a character is U+FFFD and a control token what it is written with. */
    written(token: Token, shown?: readonly string[]): { token: string; bytes: number[] } {
      const bytes = this.bytes(token, shown)
      return { token: bytes.length > 0 ? Buffer.from(bytes).toString() : (texts[token] ?? ''), bytes: [...bytes] }
    },
    endsText: (token: Token): boolean => model.isEogToken(token),
    /** SentencePiece puts a space before the first word of a text; one generated there is its, not the model's. */
    dropFirstSpace: type === 'spm' && tokenizer.ggml.add_space_prefix !== false,
    /** The texts that stand for control tokens, such as `<|im_end|>`: what no user may be able to say. */
    controls: texts.filter(
      (text, token) => mayBeControl(text, tokenizer.ggml.token_type[token]) && kindOf(token as Token) === 'control',
    ),
  }
}

/** A cheap look before the native one: vocabularies have up to 260,000 entries, of which few hundred are control tokens. */
const mayBeControl = (text: string, type: number | undefined): boolean =>
  text.length > 1 && (type === 2 || type === 3 || (text.startsWith('<') && text.endsWith('>')))
