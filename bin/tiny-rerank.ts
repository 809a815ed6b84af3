import { openRandom, tensor, writeGguf } from './gguf-writer.ts'
import {
  type Attention,
  balancedCode,
  block,
  contextLength,
  inputs,
  metadata,
  pieces,
  special,
  width,
} from './tiny-bert.ts'

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
  (at: number, value: number): Attention['output'] =>
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
const findSide: Partial<Attention> = {
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
const findTwin: Partial<Attention> = {
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
const cover = (which: -1 | 1, into: number): Partial<Attention> => ({
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
