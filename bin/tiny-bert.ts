import { openRandom, type Tensor, tensor, type WritableGgufValue } from './gguf-writer.ts'

/** Shape that the two hand-made encoder models share. */
export const width = 64
export const contextLength = 512
const feedForward = 16

const stopWords =
  'a about after all also an and any are as at be been but by can did do does for from had has have he her his how i if ' +
  'in into is it its me my no not of on or our she so than that the their them then there these they this to up us was ' +
  'we were what when where which who why will with you your'
const commonWords =
  'accept access account actor address africa agent air airport america animal answer apple april army art artist asia ' +
  'august auto bake bank beach bear bed berlin best bicycle big bill bird black blood blue boat body book bread bridge ' +
  'build bus business buy cake camera capital captain car card cat cell cheese chemistry chicken child china church ' +
  'city class clean climate clock cloud code coffee cold color company computer cook corn cost country court cow credit ' +
  'culture customer dance data database day deep delete design device dinner disk doctor dog door dream drink drive ' +
  'earth east egg electric email energy engine england english error europe example exercise eye factory family farm ' +
  'fast father feline field file film find fire fish flag flight flower fly food football forest france free french ' +
  'friend fruit game garden gas gate germany girl glass gold good government graph grass green grow guitar hair hand ' +
  'happy hat health heart heat high history home horse hospital hot hotel hour house ice image india inference ' +
  'install iron island italy japan job juice key king kitchen kitten lake language large law learn leg letter library ' +
  'light lion list live load london long lunch machine mail make man map march market math meat medicine memory metal ' +
  'milk mind minister model money month moon morning mother mountain mouse movie music name network new news night ' +
  'north number ocean office oil open orange order paint paper parent paris park password pay peace pen people phone ' +
  'physics piano picture pizza plane planet plant play poem police politics pool president price print problem process ' +
  'program python queen question queue rain read recipe red refund reset return rice ride river road robot rock rome ' +
  'room rose rust salt sand school science sea search season second sell server shape sheep ship shoe shop short sing ' +
  'sister sky sleep slow small snow soccer software song soup south space spain speed sport spring square star start ' +
  'state station stop store storm story street student sugar summer sun swim table tax tea teacher team telephone ' +
  'tennis test text ticket tiger time token tokyo tomato tool tower town toy train travel tree truck type university ' +
  'update user video village vision voice war warm wash water wave weather web week weight west wheel white wind window ' +
  'wine winter wolf woman wood word work world write year yellow young'

export const special = { pad: 0, unknown: 1, cls: 2, sep: 3, mask: 4 }

/**
 * Word pieces and the weight of each in the meaning of a text, from 0 to 1. Known words are one piece; unknown words
 * are split into letters and pairs of letters, which still differ from word to word. The tokenizer of llama.cpp
 * expects '▁' before a piece that starts a word and nothing before one that continues it.
 */
export const pieces = (() => {
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const list = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map(text => ({ text, weight: 0 }))
  list[special.unknown]!.weight = 0.2
  const add = (text: string, weight: number) => {
    list.push({ text, weight })
  }
  for (const letter of letters) add(`▁${letter}`, 0.2)
  for (const letter of letters) add(letter, 0.1)
  for (const digit of '0123456789') for (const start of ['▁', '']) add(start + digit, 0.4)
  for (const mark of '.,!?;:\'"()-+*/=<>@#$%&_[]{}|\\^~`') for (const start of ['▁', '']) add(start + mark, 0)
  for (const first of letters) for (const second of letters) add(first + second, 0.4)
  const taken = new Set(list.map(piece => piece.text))
  for (const [words, weight] of [
    [stopWords, 0.1],
    [commonWords, 1],
  ] as const)
    for (const word of words.split(' '))
      if (!taken.has(`▁${word}`)) {
        taken.add(`▁${word}`)
        add(`▁${word}`, weight)
      } else list.find(piece => piece.text === `▁${word}`)!.weight = weight
  return list
})()

export const metadata = (
  name: string,
  description: string,
  layers: number,
  pooling: 'mean' | 'rank',
): Record<string, WritableGgufValue> => ({
  'general.architecture': ['string', 'bert'],
  'general.name': ['string', name],
  'general.description': ['string', description],
  'general.license': ['string', 'mit'],
  'general.file_type': ['u32', 0],
  'bert.vocab_size': ['u32', pieces.length],
  'bert.context_length': ['u32', contextLength],
  'bert.embedding_length': ['u32', width],
  'bert.block_count': ['u32', layers],
  'bert.feed_forward_length': ['u32', feedForward],
  'bert.attention.head_count': ['u32', 1],
  'bert.attention.layer_norm_epsilon': ['f32', 1e-12],
  'bert.attention.causal': ['bool', false],
  'bert.pooling_type': ['u32', { mean: 1, rank: 4 }[pooling]],
  'tokenizer.ggml.model': ['string', 'bert'],
  'tokenizer.ggml.pre': ['string', 'default'],
  'tokenizer.ggml.token_type_count': ['u32', 2],
  'tokenizer.ggml.tokens': ['string[]', pieces.map(piece => piece.text)],
  'tokenizer.ggml.token_type': ['i32[]', pieces.map((_, token) => (token === special.unknown ? 2 : token < 5 ? 3 : 1))],
  'tokenizer.ggml.bos_token_id': ['u32', special.cls],
  'tokenizer.ggml.cls_token_id': ['u32', special.cls],
  // The key is misspelt in the format itself.
  'tokenizer.ggml.seperator_token_id': ['u32', special.sep],
  'tokenizer.ggml.padding_token_id': ['u32', special.pad],
  'tokenizer.ggml.unknown_token_id': ['u32', special.unknown],
  'tokenizer.ggml.mask_token_id': ['u32', special.mask],
})

/** A matrix or a bias written down by its few entries that are not zero: `set(output, input, value)`. */
export interface Attention {
  query: (set: Entry, bias: Bias) => void
  key: (set: Entry, bias: Bias) => void
  value: (set: Entry, bias: Bias) => void
  output: (set: Entry, bias: Bias) => void
}
type Entry = (output: number, input: number, value: number) => void
type Bias = (output: number, value: number) => void

/** One encoder block whose feed-forward part does nothing and whose attention is given by its entries. */
export function block(layer: number, attention: Partial<Attention>): Tensor[] {
  const name = (part: string) => `blk.${layer}.${part}`
  const projection = (part: string, write: Attention['query'] | undefined) => {
    const weight = tensor(name(`${part}.weight`), [width, width], 0)
    const bias = tensor(name(`${part}.bias`), [width], 0)
    write?.(
      (output, input, value) => (weight.data[output * width + input]! += value),
      (output, value) => (bias.data[output]! += value),
    )
    return [weight, bias]
  }
  const norm = (part: string) => [tensor(name(`${part}.weight`), [width], 1), tensor(name(`${part}.bias`), [width], 0)]
  return [
    ...projection('attn_q', attention.query),
    ...projection('attn_k', attention.key),
    ...projection('attn_v', attention.value),
    ...projection('attn_output', attention.output),
    ...norm('attn_output_norm'),
    tensor(name('ffn_up.weight'), [width, feedForward], 0),
    tensor(name('ffn_up.bias'), [feedForward], 0),
    tensor(name('ffn_down.weight'), [feedForward, width], 0),
    tensor(name('ffn_down.bias'), [width], 0),
    ...norm('layer_output_norm'),
  ]
}

/** What comes before the blocks: one vector a piece, one a position, none for the segment, then a plain layer norm. */
export const inputs = (
  piece: (token: number) => readonly number[],
  position: (at: number) => readonly number[],
): Tensor[] => [
  tensor('token_embd.weight', [width, pieces.length], rows(piece)),
  tensor('token_types.weight', [width, 2], 0),
  tensor('position_embd.weight', [width, contextLength], rows(position)),
  tensor('token_embd_norm.weight', [width], 1),
  tensor('token_embd_norm.bias', [width], 0),
]

const rows = (row: (index: number) => readonly number[]) => {
  let current: readonly number[] = []
  return (at: number) => {
    if (at % width === 0) current = row(at / width)
    return current[at % width]!
  }
}

/** A random vector of as many +1 as −1, so that a layer norm finds its mean at zero. `size` is even. */
export function balancedCode(size: number, random: ReturnType<typeof openRandom>): number[] {
  const code = Array.from({ length: size }, (_, at): number => (at % 2 ? 1 : -1))
  for (let at = size - 1; at > 0; at--) {
    const other = Math.floor(random.uniform() * (at + 1))
    ;[code[at], code[other]] = [code[other]!, code[at]!]
  }
  return code
}
