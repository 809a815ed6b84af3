import type { FamilyDefaults } from './diffusion-families.ts'

/** A model was distilled for fewer steps and without guidance; only its name tells. */
interface Distilled {
  name: RegExp
  defaults: Partial<FamilyDefaults>
}

/** By the model cards of their publishers, the most special name first. */
const distilled: readonly Distilled[] = [
  { name: /schnell/, defaults: { num_inference_steps: 4, guidance_scale: 1 } },
  { name: /z[-_.]?image[-_.]?turbo/, defaults: { num_inference_steps: 9, guidance_scale: 1 } },
  {
    name: /sdxl[-_.]?turbo|sd[-_.]?turbo/,
    defaults: { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 512 },
  },
  {
    name: /turbo|lightning|hyper[-_.]?sd|(^|[-_./])lcm([-_./]|$)/,
    defaults: { num_inference_steps: 8, guidance_scale: 1 },
  },
]

/**
 * Returns the defaults of a model with one of these names: those of its family, unless a name says that it was distilled.
 * `lightning-4step` in a name is the number of steps.
 */
export function distilledDefaults(family: FamilyDefaults, names: readonly string[]): FamilyDefaults {
  for (const { name, defaults } of distilled) {
    const found = names.map(one => one.toLowerCase()).find(one => name.test(one))
    if (found === undefined) continue
    const steps = Number(/(\d{1,2})[-_ ]?steps?\b/.exec(found)?.[1] ?? defaults.num_inference_steps)
    return { ...family, ...defaults, num_inference_steps: steps }
  }
  return family
}
