import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFuture } from '../../../cli/commands/gpu.ts'
import { checkDeviceUse, deviceUse } from '../../../cli/doctor/device-use.ts'
import { Model } from '../../../core/models/model.ts'
import { fakeModel, startApp } from '../../_app.ts'
import { layeredGguf } from '../../gpu/_layered-gguf.ts'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'

test('pause, list and resume a device, and rules', async () => {
  await using app = await startApp({ models: [fakeModel('fake')] })
  const run = async (...args: string[]) => {
    const { exitCode, stdout, stderr, failure } = await runInProcess(args, { INFER_DATA_DIR: app.dataDir })
    return { exitCode, text: stdout.toString(), stderr, refusal: failure?.message }
  }
  await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'wake up' } })
  expect((await run('gpu', 'list')).text).toMatch(/^device .*models.*state\ncpu .*fake +used$/m)

  const paused = await run('gpu', 'pause', '--for', '2h')
  expect(paused).toMatchObject({ exitCode: 0 })
  expect(paused.text).toMatch(
    /^cpu is paused until 20\d\d-\d\d-\d\d \d\d:\d\dZ, and no model is on it\. Use again with: infer gpu resume\n$/,
  )
  const listed = await run('gpu', 'list')
  expect(listed.text).toMatch(/^cpu .* - +paused$/m)
  expect(listed.text).toMatch(/^pause_\w+ +all GPUs +until 20.*Z +pauses cpu until 20/m)
  expect((await run('ps')).stderr).toMatch(/cpu is paused until 20.*\n.*No model is loaded/)
  expect((await run('status')).text).toMatch(/^ {2}cpu is paused until 20/m)
  const plan = await run('model', 'plan', 'fake')
  expect(plan.text).toMatch(/^fake {2}wait\n'fake' waits: cpu is paused until 20/)
  expect(plan.text).toMatch(/^ {2}cpu is paused until 20/m)
  expect(plan.text).toMatch(/^The request begins in about (1 h 59 min|2 h)/m)

  // Doctor asks the server, and reads what is stored where none runs.
  const stopped = temporaryFolder()
  cpSync(join(app.dataDir, 'gpu-pauses.json'), join(stopped, 'gpu-pauses.json'))
  for (const folder of [app.dataDir, stopped])
    expect(checkDeviceUse(await deviceUse(folder, [{ id: 'cpu', kind: 'cpu' }]))).toMatchObject({
      state: 'warning',
      detail: expect.stringMatching(/^cpu is paused until 20\d\d-\d\d-\d\d \d\d:\d\dZ$/) as string,
      advice: expect.stringContaining('infer gpu resume') as string,
    })

  expect((await run('gpu', 'resume', '--device', 'cpu')).text).toBe('cpu is used again.\n')
  expect(checkDeviceUse(await deviceUse(app.dataDir, []))).toBeUndefined()
  expect((await run('gpu', 'resume')).text).toBe('Nothing was paused there.\n')

  const rule = await run('gpu', 'pause', '--schedule', '0 4 29 2 *', '--for', '1h', '--timezone', 'UTC', '--json')
  const { id } = JSON.parse(rule.text) as { id: string }
  expect((await run('gpu', 'list')).text).toMatch(
    new RegExp(`^${id} +all GPUs +0 4 29 2 \\* \\(UTC\\) for 1 h +next 20\\d\\d-02-29 04:00Z$`, 'm'),
  )
  const program = await run('gpu', 'pause', '--when', 'process:no-such-program')
  expect(program.text).toMatch(
    /^The pause is kept: while no-such-program runs\. It pauses nothing now\. Remove it with: infer gpu resume --pause pause_\w+\n$/,
  )
  expect((await run('gpu', 'resume', '--pause', id)).text).toBe(`The pause ${id} is removed.\n`)
  expect((await run('gpu', 'resume', '--pause', id)).refusal).toContain('There is no pause')
  expect((await run('gpu', 'pause', '--device', '7')).refusal).toContain("There is no device '7' here.")
  expect((await run('gpu', 'pause', '--schedule', '0 0 30 2 *', '--for', '1h')).refusal).toContain('never comes')
})

test('a plan says what would make a context longer that the memory has cut', async () => {
  const source = layeredGguf(temporaryFolder(), 1, 131_072)
  const model = Model.parse({ id: 'long', engine: 'gguf', source, devices: 'cpu', memory: '5GiB', concurrency: 1 })
  await using app = await startApp({ models: [model] })
  const { stdout } = await runInProcess(['model', 'plan', 'long'], { INFER_DATA_DIR: app.dataDir })
  expect(stdout.toString()).toMatch(
    /\nIt runs on the processor\.\nWith an 8-bit cache \(`kv_type: q8_0`\) the context would be 16384 tokens instead of 8192\.\n/,
  )
})

test('doctor says why devices are paused, and which cards a running server does not use', () => {
  const pause = { until: null, when: null, schedule: null, configured: false, paused_devices: ['gpu0'], ends_at: null }
  const end = Date.parse('2026-11-28T18:30Z') / 1_000
  const use = {
    pauses: [
      pause,
      { ...pause, when: 'process:blender', paused_devices: ['gpu1'] },
      {
        ...pause,
        schedule: { cron: '0 18 * * *', timezone: 'UTC', for: 1_800 },
        configured: true,
        paused_devices: ['gpu2'],
        ends_at: end,
      },
      { ...pause, when: 'process:idle', paused_devices: [] },
    ],
    faults: [
      { id: 'gpu3', reason: 'The kernel reports Xid 79.' },
      { id: 'gpu4', reason: 'x' },
    ],
  }
  expect(checkDeviceUse(use, ['gpu4'])).toMatchObject({
    detail:
      'gpu3 is not used: The kernel reports Xid 79; gpu0 is paused until it is resumed; gpu1 is paused while blender runs; gpu2 is paused until 2026-11-28 18:30Z: 0 18 * * * (UTC) for 30 min (infer.yaml)',
    advice: 'Run nvidia-smi and repair what it reports. To use paused devices now: infer gpu resume',
  })
})

test.each<[text: string, expected: number | RegExp]>([
  ['2026-12-31T18:30Z', Date.parse('2026-12-31T18:30Z')],
  ['18:30', new Date(2026, 10, 28, 18, 30).getTime()],
  ['7:05', new Date(2026, 10, 29, 7, 5).getTime()],
  ['2026-01-01', /in the past/],
  ['25:00', /Write it as 18:30/],
  ['tomorrow', /Write it as 18:30/],
])('--until %s', (text, expected) => {
  const now = new Date(2026, 10, 28, 12, 0).getTime()
  if (typeof expected === 'number') expect(readFuture(text, now)).toBe(expected)
  else
    expect(() => readFuture(text, now)).toThrow(expect.objectContaining({ message: expect.stringMatching(expected) }))
})
