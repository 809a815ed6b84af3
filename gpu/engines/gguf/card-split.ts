/** What a model takes on its cards that is divided among them by layers. Bytes. */
export interface LayerBytes {
  /** On each card, whatever layers it has. */
  each: number
  /** Of the layers on the cards, in their order. The output is the last, and what belongs to no layer is in the first. */
  layers: readonly number[]
}

/** How an engine of llama.cpp divides a model among several cards. */
export interface CardSplit extends LayerBytes {
  /**
   * `booked`: infer names the layers of each card. `free`: the engine cannot be told, and divides them in proportion to
   * the free memory of the cards, as llama.cpp does by default.
   */
  by: 'booked' | 'free'
}

/** The layers on each card, and the bytes that it needs for them. */
export interface DividedLayers {
  layers: number[]
  bytes: number[]
}

/** Returns the bytes on all of `cards` cards together. */
export const splitBytes = ({ each, layers }: LayerBytes, cards: number): number => each * cards + sum(layers)

/**
 * Divides the layers among cards with so many free bytes, in this order. Undefined when they do not fit. Named layers are
 * divided in proportion to what each card has for them; where that does not fit, each card gets as many as it can hold.
 */
export function divideLayers({ each, layers, by }: CardSplit, free: readonly number[]): DividedLayers | undefined {
  if (free.some(bytes => bytes < each)) return undefined
  const all = sum(layers)
  const shares = cumulated(free.map(bytes => (by === 'free' ? bytes : bytes - each)))
  const room = shares.at(-1)!
  if (by === 'booked' && room < all) return undefined
  let before = 0
  const proportional = layers.map((bytes, at) => {
    // llama.cpp counts the layers; their bytes are more exact.
    const reached = by === 'free' ? at / layers.length : (before + bytes / 2) / all
    before += bytes
    return Math.max(
      0,
      shares.findIndex(share => reached < share / room),
    )
  })
  const made = onCards(each, layers, proportional, free)
  return made ?? (by === 'booked' ? onCards(each, layers, filled(each, layers, free), free) : undefined)
}

/** The card of each layer when cards are filled one after the other. */
function filled(each: number, layers: readonly number[], free: readonly number[]): number[] {
  let card = 0
  let used = each
  return layers.map(bytes => {
    while (card < free.length - 1 && used + bytes > free[card]!) [card, used] = [card + 1, each]
    used += bytes
    return card
  })
}

function onCards(
  each: number,
  layers: readonly number[],
  cardOf: readonly number[],
  free: readonly number[],
): DividedLayers | undefined {
  const counts = free.map(() => 0)
  const bytes = free.map(() => each)
  for (const [at, card] of cardOf.entries()) {
    counts[card]!++
    bytes[card]! += layers[at]!
  }
  return bytes.every((needed, card) => needed <= free[card]!) ? { layers: counts, bytes } : undefined
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

function cumulated(numbers: readonly number[]): number[] {
  let all = 0
  return numbers.map(one => (all += one))
}
