import type { LlamaModel, Token } from 'node-llama-cpp'

export type PieceKind = 'normal' | 'byte' | 'user' | 'control'
/** The notation of a vocabulary: '▁' for a space, or GPT-2's printable alphabet. */
export type PieceForm = 'spaces' | 'gpt2'

/**
 * GPT-2's printable character for each of the 256 bytes, used by all later byte-level vocabularies.
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
 * Converts a vocabulary entry to the bytes of the token, like llama.cpp's token_to_piece. node-llama-cpp returns it
 * only as a string, which loses incomplete characters.
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
    // For rare vocabulary types use llama.cpp's text; only characters split over tokens are lost.
    if (form === undefined || text === undefined) return Buffer.from(model.detokenize([token]))
    return pieceBytes(text, kindOf(token), form)
  }

  return {
    size: texts.length,
    /** The bytes of a token; empty for a control token unless its text is in `shown`. */
    bytes(token: Token, shown?: readonly string[]): Uint8Array {
      const bytes = (cache[token] ??= piece(token))
      return shown !== undefined && bytes.length === 0 && shown.includes(texts[token] ?? '')
        ? Buffer.from(texts[token]!)
        : bytes
    },
    /** A readable form of a token: incomplete characters become U+FFFD, control tokens their text. */
    written(token: Token, shown?: readonly string[]): { token: string; bytes: number[] } {
      const bytes = this.bytes(token, shown)
      return { token: bytes.length > 0 ? Buffer.from(bytes).toString() : (texts[token] ?? ''), bytes: [...bytes] }
    },
    endsText: (token: Token): boolean => model.isEogToken(token),
    /** Whether to drop a generated space before the first word, because SentencePiece adds it and not the model. */
    dropFirstSpace: type === 'spm' && tokenizer.ggml.add_space_prefix !== false,
    /** The texts of control tokens, such as `<|im_end|>`, which users must not be able to inject. */
    controls: texts.filter(
      (text, token) => mayBeControl(text, tokenizer.ggml.token_type[token]) && kindOf(token as Token) === 'control',
    ),
  }
}

/** A cheap filter before the native check: of up to 260,000 entries only a few hundred are control tokens. */
const mayBeControl = (text: string, type: number | undefined): boolean =>
  text.length > 1 && (type === 2 || type === 3 || (text.startsWith('<') && text.endsWith('>')))
