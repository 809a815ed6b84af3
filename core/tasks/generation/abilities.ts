import { invalid } from '../../failure.ts'
import type { ModelSetEntry } from '../../models/engine-traits.ts'
import { featureCheck } from '../catalog.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'

/** The parts of a request that only some engines can do. */
export interface SpecialInputs extends Pick<GenerationInputs, 'background' | 'prompt'> {
  /** Number of input images, and the field that names them. */
  images: number
  imageField: string
}

/**
 * Throws Failure `array_above_max_length` for more input images than the engine takes, and `unsupported_parameter` for
 * a transparent background or a missing prompt where the engine can do neither.
 */
export function checkAbilities(
  { images, imageField, background, prompt }: SpecialInputs,
  entry: Pick<ModelSetEntry, 'id' | 'engine' | 'traits'>,
): void {
  const max = entry.traits.inputImages ?? 1
  if (images > max)
    throw invalid(
      imageField,
      `'${imageField}' has ${images} images, but the engine of '${entry.id}' (${entry.engine}) takes ${max === 1 ? 'one' : `at most ${max}`}. Send fewer images or choose another model.`,
      'array_above_max_length',
    )
  const isVariation = images > 0 && prompt === ''
  const requireFeature = featureCheck(entry)
  requireFeature(background === 'transparent', 'transparent_background', 'background')
  requireFeature(isVariation, 'variations', 'prompt')
}
