import { expect, test } from 'vitest'
import { distilledDefaults } from '../../../../core/models/recognition/distilled-defaults.ts'

const family = { steps: 50, guidance: 5, width: 1024, height: 1024 }

test.each([
  [['acme/sdxl-base'], 50, 5, 1024],
  [['black-forest-labs/FLUX.1-schnell'], 4, 1, 1024],
  [['Tongyi-MAI/Z-Image-Turbo'], 9, 1, 1024],
  [['stabilityai/sdxl-turbo'], 4, 1, 512],
  [['ByteDance/SDXL-Lightning', 'sdxl_lightning_4step'], 8, 1, 1024],
  [['sdxl_lightning_4step'], 4, 1, 1024],
  [['acme/lcm-dreamshaper'], 8, 1, 1024],
  [['acme/calcmap'], 50, 5, 1024],
])('%j', (names, steps, guidance, width) => {
  expect(distilledDefaults(family, names)).toMatchObject({ steps, guidance, width })
})
