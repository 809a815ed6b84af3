import { expect, test } from 'vitest'
import { GenerationDefaults } from '../../../../core/models/generation-defaults.ts'
import { diffusionFamilies, distilledDefaults } from '../../../../core/models/recognition/diffusion-families.ts'

const family = { num_inference_steps: 50, guidance_scale: 5, width: 1024, height: 1024 }

test.each([
  [['acme/sdxl-base'], 50, 5, 1024],
  [['black-forest-labs/FLUX.1-schnell'], 4, 1, 1024],
  [['Tongyi-MAI/Z-Image-Turbo'], 9, 1, 1024],
  [['stabilityai/sdxl-turbo'], 4, 1, 512],
  [['ByteDance/SDXL-Lightning', 'sdxl_lightning_4step'], 8, 1, 1024],
  [['sdxl_lightning_4step'], 4, 1, 1024],
  [['acme/lcm-dreamshaper'], 8, 1, 1024],
  [['acme/calcmap'], 50, 5, 1024],
])('%j', (names, num_inference_steps, guidance_scale, width) => {
  expect(distilledDefaults(family, names)).toMatchObject({ num_inference_steps, guidance_scale, width })
})

test.each(Object.entries(diffusionFamilies))('requests may have the size, frames and rate of %s', (_, { defaults }) => {
  const { num_inference_steps: _steps, guidance_scale: _guidance, ...others } = defaults
  expect(GenerationDefaults.parse(others)).toEqual(others)
})
