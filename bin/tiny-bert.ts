import { openRandom, type Tensor, tensor, type WritableGgufValue, writeGguf } from './gguf-writer.ts'

/** Shape that the two hand-made encoder models share. */
const width = 64
const contextLength = 512
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

const special = { pad: 0, unknown: 1, cls: 2, sep: 3, mask: 4 }

/**
 * Word pieces and the weight of each in the meaning of a text, from 0 to 1. Known words are one piece; unknown words
 * are split into letters and pairs of letters, which still differ from word to word. The tokenizer of llama.cpp
 * expects '▁' before a piece that starts a word and nothing before one that continues it.
 */
const pieces = (() => {
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const list = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map(text => ({ text, weight: 0 }))
  list[special.unknown]!.weight = 0.2
  const add = (text: string, weight: number) => void list.push({ text, weight })
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

const metadata = (
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

/** Writes a matrix and a bias by their few entries that are not zero. */
type Projection = (
  set: (output: number, input: number, value: number) => void,
  bias: (output: number, value: number) => void,
) => void
type Attention = Partial<Record<'query' | 'key' | 'value' | 'output', Projection>>

/** One encoder block whose feed-forward part does nothing and whose attention is given by its entries. */
function block(layer: number, attention: Attention): Tensor[] {
  const name = (part: string) => `blk.${layer}.${part}`
  const projection = (part: string, write: Projection | undefined) => {
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
const inputs = (piece: (token: number) => readonly number[], position: (at: number) => readonly number[]): Tensor[] => [
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
function balancedCode(size: number, random: ReturnType<typeof openRandom>): number[] {
  const code = Array.from({ length: size }, (_, at): number => (at % 2 ? 1 : -1))
  for (let at = size - 1; at > 0; at--) {
    const other = Math.floor(random.uniform() * (at + 1))
    ;[code[at], code[other]] = [code[other]!, code[at]!]
  }
  return code
}

/** The last two numbers of a vector hold what a piece does not say; the final norm drops them. */
const meaning = width - 2

/**
 * A text becomes the mean of the codes of its pieces, each weighted by how much it says: texts that share words are
 * near each other. A piece puts `weight` of its length into its code and the rest into two numbers that the last
 * norm multiplies by zero; this is how a weight survives the layer norms, which make all vectors equally long.
 */
export function tinyEmbed(): Buffer {
  const random = openRandom(2)
  const code = (token: number) => {
    const weight = token === special.cls || token === special.sep ? 0.02 : 0.05 + 0.95 * pieces[token]!.weight
    const rest = Math.sqrt((meaning * (1 - weight * weight)) / 2)
    return [...balancedCode(meaning, random).map(sign => sign * weight), rest, -rest]
  }
  // A little of the position, so that the order of the words is not lost entirely.
  const position = () => [...Array.from({ length: meaning }, () => 0.05 * random.normal()), 0, 0]
  const description =
    'A hand-made toy that ships with infer, so that everything can be tried without a download. Texts that share ' +
    'words get near vectors; it knows nothing about what words mean.'
  const tensors = [...inputs(code, position), ...block(0, {})]
  return writeGguf(
    metadata('tiny-embed', description, 1, 'mean'),
    tensors.map(part =>
      part.name === 'blk.0.layer_output_norm.weight' ? tensor(part.name, [width], at => (at < meaning ? 1 : 0)) : part,
    ),
  )
}

// Where things stand in the 64 numbers of a token. All but the code are kept as a pair (x, −x), so that the mean
// stays zero and the layer norms only scale.
const codeSize = 46
const isCls = 46
const isSep = 48
const position = 50
const positionRest = 52
const weight = 54
const side = 56
const hit = 58
const queryCover = 60
const documentCover = 62

const pair = (vector: number[], at: number, value: number) => {
  vector[at] = value
  vector[at + 1] = -value
}
const writePair =
  (at: number, value: number): Projection =>
  set => {
    set(at, 0, value)
    set(at + 1, 0, -value)
  }

/** Scores are divided by √64 before the softmax. */
const score = (value: number) => value * Math.sqrt(width)
const flag = Math.sqrt(codeSize / 2)
/** What the first layer norm multiplies by: every token starts with length √48 and gets √64. */
const first = Math.sqrt(width / 48)
/** And the second, once the side (±1.5) is there. */
const second = Math.sqrt(width / (width + 2 * 1.5 ** 2))
const sided = first * second

/** Each token learns whether it stands before or after a [SEP]: −1.5 or +1.5 in `side`. */
const findSide: Attention = {
  // The score of a [SEP] at m seen from i is steep × (i − m), of [CLS] 0, of everything else far below: a token
  // with a [SEP] before it attends to it (the first one is the furthest and wins), all others attend to [CLS].
  query: (set, bias) => {
    set(0, position, 60 / first)
    bias(1, 60)
  },
  key: (set, bias) => {
    const steep = score(8 * contextLength) / 60
    set(0, isSep, steep / (flag * first))
    set(1, position, -steep / first)
    bias(1, -score(100) / 60)
    for (const at of [isCls, isSep]) set(1, at, score(100) / 60 / (flag * first))
  },
  value: set => {
    set(0, isSep, 1 / (flag * first))
    set(0, isCls, -1 / (flag * first))
  },
  output: writePair(side, 1.5),
}

/** Each token learns whether its like stands on the other side: 1 in `hit`, or else 0. */
const findTwin: Attention = {
  // Scores: its like on the other side 96, another token there at most about 70, on its own side less, [CLS] 82.
  query: (set, bias) => {
    for (let at = 0; at < codeSize; at++) set(at, at, 1 / sided)
    set(codeSize, side, -1 / (1.5 * second))
    bias(codeSize + 1, 1)
  },
  key: set => {
    for (let at = 0; at < codeSize; at++) set(at, at, score(60) / codeSize / sided)
    set(codeSize, side, score(36) / (1.5 * second))
    set(codeSize, isCls, score(36) / (flag * sided))
    set(codeSize + 1, isCls, score(82) / (flag * sided))
  },
  value: (set, bias) => {
    bias(0, 1)
    for (const at of [isCls, isSep]) set(0, at, -1 / (flag * sided))
  },
  output: writePair(hit, 1),
}

/** [CLS] takes the mean of `hit` over one side, where a telling word counts twelve times as much as an empty one. */
const cover = (which: -1 | 1, into: number): Attention => ({
  query: (set, bias) => bias(0, 1),
  key: set => {
    set(0, side, (which * score(30)) / 1.5)
    for (const at of [isCls, isSep]) set(0, at, -score(90) / flag)
    set(0, weight, score(2.5) / sided)
  },
  value: set => set(0, hit, 1),
  output: writePair(into, 1),
})

/**
 * A cross-encoder made by hand: three steps of attention find out which share of the query's words stands in the
 * document, a fourth which share of the document's words stands in the query, and the score grows with both.
 */
export function tinyRerank(): Buffer {
  const random = openRandom(3)
  const code = (token: number) => {
    const vector = Array.from({ length: width }, () => 0)
    if (token === special.cls || token === special.sep) pair(vector, token === special.cls ? isCls : isSep, flag)
    else {
      const { weight: says } = pieces[token]!
      const length = Math.sqrt((codeSize - 2 * says * says) / codeSize)
      for (const [at, sign] of balancedCode(codeSize, random).entries()) vector[at] = sign * length
      pair(vector, weight, says)
    }
    return vector
  }
  const place = (at: number) => {
    const vector = Array.from({ length: width }, () => 0)
    pair(vector, position, at / contextLength)
    pair(vector, positionRest, Math.sqrt(1 - (at / contextLength) ** 2))
    return vector
  }
  const description =
    'A hand-made toy that ships with infer, so that everything can be tried without a download. It scores a document ' +
    'by the words it shares with the query; it knows nothing about what words mean.'
  const judge = tensor('cls.weight', [width, width], 0)
  judge.data[queryCover] = 1
  judge.data[documentCover] = 0.25
  return writeGguf(metadata('tiny-rerank', description, 4, 'rank'), [
    ...inputs(code, place),
    ...block(0, findSide),
    ...block(1, findTwin),
    ...block(2, cover(-1, queryCover)),
    ...block(3, cover(1, documentCover)),
    judge,
    tensor('cls.bias', [width], at => (at === 0 ? -0.6 : 0)),
    tensor('cls.output.weight', [width, 1], at => (at === 0 ? 7.5 : 0)),
    tensor('cls.output.bias', [1], 0),
  ])
}
