import { expect, test } from 'vitest'
import { sdServer } from '../../../gpu/presets/sd-server.ts'
import { progressReader } from '../../../gpu/requests/progress.ts'

/** Lines of a real run of sd-server, from the load to the end of an image whose VAE works in tiles. */
test('only the bars of the steps are progress', () => {
  const read = progressReader(sdServer.progress!)
  const lines: [line: string, progress?: object][] = [
    ['  |=========>                | 214/1130 - 1.20GB/s\u001b[K'],
    ['  |==========================| 1130/1130 - 806.38MB/s\u001b[K'],
    ['[INFO ] stable-diffusion.cpp:3367 - generate_image 64x64'],
    ['  |=========================>| 3/9 - 1.10it/s\u001b[K'],
    ['[INFO ] stable-diffusion.cpp:3168 - get_learned_condition completed, taking 4.88s'],
    ['[INFO ] stable-diffusion.cpp:3401 - generating image: 1/2 - seed 5'],
    ['  |=========================>| 1/2 - 7.72s/it\u001b[K', { pass: 1, step: 1, steps: 2 }],
    ['  |=========================>| 1/2 - 7.7'],
    ['  |==========================| 2/2 - 7.12s/it\u001b[K', { pass: 1, step: 2, steps: 2 }],
    ['  |==========================| 3/2 - 7.12s/it\u001b[K'],
    ['[INFO ] stable-diffusion.cpp:3432 - sampling completed, taking 14.24s'],
    ['  |=========================>| 3/9 - 1.10it/s\u001b[K'],
    ['[INFO ] stable-diffusion.cpp:3401 - generating image: 2/2 - seed 6'],
    ['  |=========================>| 1/2 - 1.50it/s\u001b[K', { pass: 2, step: 1, steps: 2 }],
  ]
  expect(lines.map(([line]) => read(line))).toEqual(lines.map(([, progress]) => progress))
})

test('images of one step each are passes of their own; a repeated bar is not', () => {
  const read = progressReader(sdServer.progress!)
  const lines = ['get_learned_condition completed', 'generating image: 1/2', '| 1/1 - 2it/s', '| 1/1 - 2it/s']
  const second = ['sampling completed', 'generating image: 2/2', '| 1/1 - 2it/s']
  expect([...lines, ...second].map(line => read(line)?.pass)).toEqual([
    undefined,
    undefined,
    1,
    1,
    undefined,
    undefined,
    2,
  ])
})
