import { openRandom, tensor, writeGguf } from './gguf-writer.ts'
import { balancedCode, block, inputs, metadata, pieces, special, width } from './tiny-bert.ts'

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
