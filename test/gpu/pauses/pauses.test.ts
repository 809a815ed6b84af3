import { spawn } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { invalidValue } from '../../../core/failure.ts'
import type { NewPause } from '../../../core/models/pause.ts'
import { openPauses } from '../../../gpu/pauses/pauses.ts'
import { isCalled, namesOfOthers, runningPrograms } from '../../../gpu/pauses/programs.ts'
import { keptLog, temporary } from '../launcher/_launch.ts'

const begin = Date.parse('2026-11-28T20:00:00Z')
const minute = 60_000

/** Pauses of two GPUs in virtual time. */
async function opened(
  dataDir: string,
  { at = begin, programs = new Set<string>(), configured = () => [] as NewPause[] } = {},
) {
  let now = at
  let timers: { at: number; run: () => void }[] = []
  const changes: string[] = []
  const log = keptLog()
  const pauses = await openPauses({
    dataDir,
    log,
    clock: {
      epoch: () => now,
      after(ms, run) {
        const timer = { at: now + ms, run }
        timers.push(timer)
        return () => void (timers = timers.filter(other => other !== timer))
      },
    },
    devices: () => [
      { id: 'gpu0', kind: 'gpu' },
      { id: 'gpu1', kind: 'gpu' },
    ],
    idsOf(names) {
      if (names.includes('gpu9')) throw invalidValue('There is no device gpu9.')
      return [...names]
    },
    configured,
    running: async names => new Set(names.filter(name => programs.has(name))),
    changed: ({ atOnce }) =>
      void changes.push(`${['gpu0', 'gpu1'].filter(id => pauses.of(id)).join()}${atOnce ? ' at once' : ''}`),
  })
  return {
    pauses,
    changes: () => changes.splice(0),
    log,
    /** Lets time pass, with all that is due then. */
    pass: async (ms: number): Promise<void> => {
      const end = now + ms
      for (;;) {
        const next = timers.toSorted((a, b) => a.at - b.at)[0]
        if (!next || next.at > end) break
        timers = timers.filter(other => other !== next)
        now = Math.max(now, next.at)
        next.run()
        await new Promise(setImmediate)
      }
      now = end
    },
  }
}

const pause = (of: Partial<NewPause> = {}): NewPause => ({
  devices: null,
  until: null,
  process: null,
  schedule: null,
  ...of,
})
const queued = { atOnce: false }

test('a pause holds from its answer to its end, and over a restart', async () => {
  const dataDir = temporary()
  const first = await opened(dataDir)
  const added = await first.pauses.add(pause({ devices: ['gpu0'], until: begin + 30 * minute }), queued)
  expect(added).toMatchObject({ pausedDevices: ['gpu0'], endsAt: begin + 30 * minute })
  expect(first.changes()).toEqual(['gpu0'])
  expect(
    first.pauses.marked([
      { id: 'gpu0', kind: 'gpu', capacity: 9 },
      { id: 'gpu1', kind: 'gpu', capacity: 9 },
    ]),
  ).toEqual([
    {
      id: 'gpu0',
      kind: 'gpu',
      capacity: 9,
      pause: { endsInMs: 30 * minute, text: 'is paused until 2026-11-28T20:30:00Z' },
    },
    { id: 'gpu1', kind: 'gpu', capacity: 9 },
  ])
  first.pauses.close()

  const second = await opened(dataDir, { at: begin + 10 * minute })
  expect(second.pauses.list()).toMatchObject([{ id: added.id, pausedDevices: ['gpu0'] }])
  await second.pass(19 * minute)
  expect(second.changes()).toEqual([])
  await second.pass(2 * minute)
  expect(second.changes()).toEqual([''])
  expect(second.pauses.list()).toEqual([])
})

test('one that has ended while the server was down does not hold', async () => {
  const dataDir = temporary()
  const first = await opened(dataDir)
  await first.pauses.add(pause({ until: begin + minute }), queued)
  const second = await opened(dataDir, { at: begin + 2 * minute })
  expect(second.pauses.of('gpu0')).toBeUndefined()
})

test('it is ended by hand, for one device or all', async () => {
  const { pauses, changes } = await opened(temporary())
  await pauses.add(pause(), { atOnce: true })
  expect(changes()).toEqual(['gpu0,gpu1 at once'])
  expect(await pauses.resume(['gpu1'])).toEqual(['gpu1'])
  expect(changes()).toEqual(['gpu0'])
  expect(await pauses.resume(null)).toEqual(['gpu0'])
  expect(await pauses.resume(null)).toEqual([])
  expect(pauses.list()).toEqual([])
})

test('while a program runs: it is looked for again and again, and only while a pause needs it', async () => {
  const programs = new Set<string>()
  const dataDir = temporary()
  const { pauses, changes, pass } = await opened(dataDir, { programs })
  const { id } = await pauses.add(pause({ process: 'game' }), queued)
  await pass(minute)
  expect(changes()).toEqual([])
  programs.add('game')
  await pass(5_000)
  expect(changes()).toEqual(['gpu0,gpu1'])
  // After a restart it holds before anything is loaded.
  expect((await opened(dataDir, { programs })).pauses.of('gpu0')).toBeDefined()
  await pauses.resume(null)
  await pass(minute)
  expect(changes()).toEqual([''])
  programs.delete('game')
  await pass(5_000)
  programs.add('game')
  await pass(5_000)
  expect(changes()).toEqual(['gpu0,gpu1'])
  expect(await pauses.remove(id)).toMatchObject({ id, process: 'game' })
  expect(changes()).toEqual([''])
  expect(await pauses.remove(id)).toBeUndefined()
})

test('a schedule pauses at its times', async () => {
  const { pauses, changes, pass } = await opened(temporary())
  const schedule = { cron: '30 20 * * *', timezone: 'UTC', forMs: 15 * minute }
  expect(await pauses.add(pause({ schedule }), queued)).toMatchObject({
    pausedDevices: [],
    endsAt: null,
    nextAt: begin + 30 * minute,
  })
  await pass(31 * minute)
  expect(changes()).toEqual(['gpu0,gpu1'])
  await pass(15 * minute)
  expect(changes()).toEqual([''])
  await pass(24 * 60 * minute)
  expect(changes()).toEqual(['gpu0,gpu1', ''])
})

test('unknown devices and too many pauses are refused, and change nothing', async () => {
  const { pauses, changes } = await opened(temporary())
  await expect(pauses.add(pause({ devices: ['gpu9'] }), queued)).rejects.toMatchObject({ code: 'invalid_value' })
  await expect(pauses.resume(['gpu9'])).rejects.toMatchObject({ code: 'invalid_value' })
  for (let at = 0; at < 100; at++) await pauses.add(pause({ process: `p${at}` }), queued)
  await expect(pauses.add(pause(), queued)).rejects.toMatchObject({ code: 'conflict' })
  expect(changes()).toEqual([])
})

test('changes at the same time are all kept', async () => {
  const dataDir = temporary()
  const { pauses } = await opened(dataDir)
  await Promise.all(Array.from({ length: 8 }, (_, at) => pauses.add(pause({ process: `p${at}` }), queued)))
  expect((await opened(dataDir)).pauses.list()).toHaveLength(8)
})

test('a pause that cannot be stored does not hold', async () => {
  const dataDir = join(temporary(), 'file')
  writeFileSync(dataDir, '')
  const { pauses, changes } = await opened(dataDir)
  await expect(pauses.add(pause(), queued)).rejects.toThrow()
  expect(changes()).toEqual([])
  expect(pauses.list()).toEqual([])
})

test('a damaged file is said, and pauses nothing', async () => {
  const dataDir = temporary()
  writeFileSync(join(dataDir, 'gpu-pauses.json'), '[{}]')
  const { pauses, log } = await opened(dataDir)
  expect(pauses.list()).toEqual([])
  expect(log.lines.join()).toContain('The pauses of the devices cannot be read')
})

test.each<[name: string, kernel: string, args: string[], is: boolean]>([
  ['game', 'game', ['/usr/games/game', '-x'], true],
  ['Game', 'game', ['game'], true],
  ['a-very-long-program-name', 'a-very-long-pro', ['python3'], true],
  ['game.exe', 'wine64-preloade', ['C:\\Games\\game.exe'], true],
  ['train.py', 'python3', ['python3', '/home/me/train.py'], true],
  ['python3', 'python3', ['/usr/bin/python3', 'train.py'], true],
  ['game', 'games', ['games'], false],
  ['train.py', 'python3', ['python3', '-u', 'train.py'], false],
])('%j: %j %j: %s', (name, kernel, args, is) => expect(isCalled(name, { kernel, args })).toBe(is))

test('programs of this machine are found by name, but for those that infer has started', async () => {
  const folder = temporary()
  const program = join(folder, `pause-probe-${process.pid % 1000}`)
  copyFileSync('/bin/sleep', program)
  writeFileSync(program, readFileSync('/bin/sleep'), { mode: 0o755 })
  const name = program.split('/').at(-1)!
  const child = spawn(program, ['60'])
  onTestFinished(() => void child.kill())
  await new Promise(resolve => child.once('spawn', resolve))
  expect(await runningPrograms([name], [], 1)).toEqual(new Set())
  expect(await runningPrograms([name], [], 999_999_999)).toEqual(new Set([name]))
  expect(await runningPrograms([name, 'other'], [])).toEqual(new Set())
  expect(await runningPrograms(['other'], ['/opt/other'])).toEqual(new Set(['other']))
})

test('engines of infer on a card are no other programs', () => {
  const process = { pid: 1, bytes: 1 }
  expect(
    namesOfOthers(
      new Map([
        [
          'gpu0',
          [
            { ...process, name: '/opt/game', engineId: null },
            { ...process, name: 'llama-server', engineId: 'wkr_1' },
          ],
        ],
        ['gpu1', [{ ...process, name: null, engineId: null }]],
      ]),
    ),
  ).toEqual(['/opt/game'])
})

test('pauses of the configuration: they follow it, can be ended for this time, and not removed', async () => {
  const dataDir = temporary()
  let quiet = [pause({ devices: ['gpu1'], schedule: { cron: '0 19 * * *', timezone: 'UTC', forMs: 120 * minute } })]
  const of = { configured: () => quiet }
  const { pauses, changes } = await opened(dataDir, of)
  const { id } = pauses.list()[0]!
  expect(pauses.list()).toMatchObject([{ isConfigured: true, pausedDevices: ['gpu1'], endsAt: begin + 60 * minute }])
  await expect(pauses.remove(id)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('is in infer.yaml') as string,
  })
  await pauses.resume(null)
  expect(changes()).toEqual([''])
  // Also after a restart: the hours were ended by hand.
  const restarted = await opened(dataDir, of)
  expect(restarted.pauses.list()).toMatchObject([{ id, pausedDevices: [] }])
  quiet = [pause({ process: 'game' })]
  await restarted.pauses.reconfigured()
  expect(restarted.pauses.list()).toMatchObject([{ process: 'game', isConfigured: true }])
  quiet = []
  await restarted.pauses.reconfigured()
  expect(restarted.pauses.list()).toEqual([])
})

test('a pause at once ends what runs on a device that is paused already', async () => {
  const { pauses, changes } = await opened(temporary())
  await pauses.add(pause(), queued)
  expect(changes()).toEqual(['gpu0,gpu1'])
  await pauses.add(pause(), { atOnce: true })
  expect(changes()).toEqual(['gpu0,gpu1 at once'])
})
