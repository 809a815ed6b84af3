import { expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { quietPause } from '../../../core/models/quiet-hours.ts'

const hour = 3_600_000

test('quiet hours and programs become pauses', () => {
  const { gpu } = parseConfig(
    `gpu:
  quiet:
    - { schedule: "0 18 * * mon-fri", for: 14h, timezone: Europe/Berlin, devices: [0, GPU-abc] }
    - { when: "process:blender" }
`,
    'infer.yaml',
  )
  expect(gpu.quiet.map(quietPause)).toEqual([
    {
      devices: ['gpu0', 'GPU-abc'],
      until: null,
      process: null,
      schedule: { cron: '0 18 * * mon-fri', timezone: 'Europe/Berlin', forMs: 14 * hour },
    },
    { devices: null, until: null, process: 'blender', schedule: null },
  ])
})

test.each<[entry: string, message: RegExp]>([
  ['{ devices: [0] }', /infer.yaml:3:7: .*needs 'schedule' with 'for', or 'when'/],
  ['{ schedule: "0 18 * * *" }', /needs 'for'/],
  ['{ schedule: "0 0 31 4 *", for: 1h }', /never comes: no month of it has a day 31/],
  ['{ schedule: "0 18 * * *", for: 1h, timezone: Mars/Base }', /'Mars\/Base' is no time zone/],
  ['{ when: steam }', /Write process: and the name of a program/],
  ['{ when: "process:a", schedule: "0 18 * * *", for: 1h }', /either 'when' or 'schedule'/],
  ['{ when: "process:a", to: 3 }', /to/],
])('%s is refused', (entry, message) => {
  expect(() => parseConfig(`gpu:\n  quiet:\n    - ${entry}\n`, 'infer.yaml')).toThrow(message)
})
