import { openRandom, type Tensor, tensor, type WritableGgufValue, writeGguf } from './gguf-writer.ts'

const width = 64
const feedForward = 64
const heads = 4
const contextLength = 4096

/**
 * The sentence in the pieces that are its tokens. A piece may stand in the vocabulary only once, so words that the
 * sentence repeats are joined with a neighbour. '▁' is how the tokenizer writes a space.
 */
const sentencePieces = (
  "Hello! ▁I▁am ▁infer's ▁built-in ▁toy ▁model: ▁I▁always ▁say ▁this ▁one ▁sentence, ▁but ▁every ▁token ▁of▁it ▁ran " +
  '▁through ▁llama.cpp ▁on ▁your ▁machine.'
).split(' ')

/** The answer of the hand-made chat model to every request. */
export const tinyChatSentence: string = sentencePieces.join('').replaceAll('▁', ' ')

/** ChatML for any role, with content that may be null. */
const chatTemplate =
  "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>\\n' }}{% endfor -%}" +
  "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}"

const kinds = { normal: 1, unknown: 2, control: 3, byte: 6 }

/** Every byte is a token, so that any text can be read and any bytes can be written; then ASCII, then the sentence. */
function vocabulary(controls: readonly string[] = []) {
  const tokens: string[] = []
  const types: number[] = []
  const scores: number[] = []
  const add = (text: string, kind: keyof typeof kinds, score = 0) => {
    types.push(kinds[kind])
    scores.push(score)
    return tokens.push(text) - 1
  }
  const unknown = add('<unk>', 'unknown')
  const start = add('<s>', 'control')
  add('</s>', 'control')
  for (let byte = 0; byte < 256; byte++) add(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, 'byte')
  add('<|im_start|>', 'control')
  const end = add('<|im_end|>', 'control')
  add('▁', 'normal', -1)
  for (let code = 33; code < 127; code++) add(String.fromCharCode(code), 'normal', -2)
  const sentence = sentencePieces.map(piece => add(piece, 'normal', -50))
  for (const text of controls) add(text, 'control')
  return { tokens, types, scores, unknown, start, end, sentence }
}

type Vocabulary = ReturnType<typeof vocabulary>

const metadata = (
  name: string,
  description: string,
  layers: number,
  words: Vocabulary,
): Record<string, WritableGgufValue> => ({
  'general.architecture': ['string', 'llama'],
  'general.name': ['string', name],
  'general.description': ['string', description],
  'general.license': ['string', 'mit'],
  'general.file_type': ['u32', 0],
  'llama.vocab_size': ['u32', words.tokens.length],
  'llama.context_length': ['u32', contextLength],
  'llama.embedding_length': ['u32', width],
  'llama.block_count': ['u32', layers],
  'llama.feed_forward_length': ['u32', feedForward],
  'llama.attention.head_count': ['u32', heads],
  'llama.attention.head_count_kv': ['u32', heads],
  'llama.rope.dimension_count': ['u32', width / heads],
  'llama.attention.layer_norm_rms_epsilon': ['f32', 1e-5],
  'tokenizer.ggml.model': ['string', 'llama'],
  'tokenizer.ggml.pre': ['string', 'default'],
  'tokenizer.ggml.tokens': ['string[]', words.tokens],
  'tokenizer.ggml.scores': ['f32[]', words.scores],
  'tokenizer.ggml.token_type': ['i32[]', words.types],
  'tokenizer.ggml.bos_token_id': ['u32', words.start],
  'tokenizer.ggml.eos_token_id': ['u32', words.end],
  'tokenizer.ggml.unknown_token_id': ['u32', words.unknown],
  'tokenizer.ggml.add_bos_token': ['bool', true],
  'tokenizer.ggml.add_eos_token': ['bool', false],
  'tokenizer.ggml.add_space_prefix': ['bool', false],
  'tokenizer.chat_template': ['string', chatTemplate],
})

const blocks = (layers: number, weight: (inputs: number) => number | (() => number)): Tensor[] =>
  Array.from({ length: layers }, (_, layer) => {
    const name = (part: string) => `blk.${layer}.${part}.weight`
    return [
      tensor(name('attn_norm'), [width], 1),
      tensor(name('attn_q'), [width, width], weight(width)),
      tensor(name('attn_k'), [width, width], weight(width)),
      tensor(name('attn_v'), [width, width], weight(width)),
      tensor(name('attn_output'), [width, width], weight(width)),
      tensor(name('ffn_norm'), [width], 1),
      tensor(name('ffn_gate'), [width, feedForward], weight(width)),
      tensor(name('ffn_up'), [width, feedForward], weight(width)),
      tensor(name('ffn_down'), [feedForward, width], weight(feedForward)),
    ]
  }).flat()

/** Entry of the Hadamard matrix: rows are as unlike each other as can be, their products are exactly 64 or 0. */
function hadamard(row: number, column: number): number {
  let bits = row & column
  let sign = 1
  for (; bits; bits &= bits - 1) sign = -sign
  return sign
}

/**
 * The chat model that ships with the program. Its one block writes nothing back, so that what reaches the output
 * layer is the embedding of the last token, and the output layer is a table from each token to the next: every
 * token of the sentence to its successor, the last one to the end, everything else to the first.
 */
export function tinyChat(): Buffer {
  const words = vocabulary()
  const { sentence, end } = words
  const speaking = [...sentence, end]
  const row = (token: number) => speaking.indexOf(token) + 1
  const sourceRow = words.tokens.map((_, token) => row(token))
  // Logits are 40 for the right token and 0 for all others: even at temperature 2 another one has odds of 1 in 10⁶.
  const strength = 40 / width
  const leadsTo = (token: number) => {
    if (token === sentence[0]) return 0
    if (token === end) return row(sentence.at(-1)!)
    const place = sentence.indexOf(token)
    return place > 0 ? row(sentence[place - 1]!) : undefined
  }
  const description =
    'A hand-made toy that ships with infer, so that everything can be tried without a download. It knows nothing and ' +
    `always answers: ${tinyChatSentence}`
  return writeGguf(metadata('tiny-chat', description, 1, words), [
    tensor('token_embd.weight', [width, words.tokens.length], at =>
      hadamard(sourceRow[Math.floor(at / width)]!, at % width),
    ),
    tensor('output_norm.weight', [width], 1),
    tensor('output.weight', [width, words.tokens.length], at => {
      const from = leadsTo(Math.floor(at / width))
      return from === undefined ? 0 : strength * hadamard(from, at % width)
    }),
    ...blocks(1, () => 0),
  ])
}

/**
 * The same shape with random weights: it writes arbitrary bytes. Only tests use it, some with the chat template and
 * the control tokens of another family.
 */
export function tinyChatRandom(
  seed = 1,
  { template = chatTemplate, controls = [] }: { template?: string; controls?: readonly string[] } = {},
): Buffer {
  const words = vocabulary(controls)
  const random = openRandom(seed)
  const description = 'A hand-made toy with random weights for tests of sampling and streaming. It writes noise.'
  const data = metadata('tiny-chat-random', description, 2, words)
  return writeGguf({ ...data, 'tokenizer.chat_template': ['string', template] }, [
    tensor('token_embd.weight', [width, words.tokens.length], random.normal),
    tensor('output_norm.weight', [width], 1),
    tensor('output.weight', [width, words.tokens.length], () => random.normal() / Math.sqrt(width)),
    ...blocks(2, inputs => () => random.normal() / Math.sqrt(inputs)),
  ])
}
