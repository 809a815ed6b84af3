import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseSliceMemory, parseSlices } from '../../../gpu/devices/mig.ts'
import { fewFields, fields, parseCards, problemOf, queryArguments } from '../../../gpu/devices/nvidia.ts'
import { parseCardProcesses } from '../../../gpu/devices/nvidia-smi.ts'
import type { ProgramRun } from '../../../gpu/sandbox/program.ts'
import { cardLine } from '../../fixtures/nvidia-smi.ts'

const MiB = 2 ** 20
const h200 = cardLine()

describe('parseCards', () => {
  const cases: [name: string, csv: string, of: readonly string[], expected: object[]][] = [
    [
      'one card',
      `${h200}\n`,
      fields,
      [
        {
          index: 0,
          name: 'NVIDIA H200',
          driver: '580.159.03',
          totalBytes: 143771 * MiB,
          usedBytes: 4 * MiB,
          mig: false,
        },
      ],
    ],
    [
      'several cards, in the order of the bus',
      `${h200}\n${cardLine({ index: 1, name: 'NVIDIA L4', 'memory.used': 100, 'mig.mode.current': '[N/A]' })}\n`,
      fields,
      [{ index: 0 }, { index: 1, name: 'NVIDIA L4', usedBytes: 100 * MiB, mig: false }],
    ],
    [
      'values that the driver does not know become null',
      cardLine({
        driver_version: '[Not Supported]',
        compute_cap: '[N/A]',
        'memory.used': '[Unknown Error]',
        'mig.mode.current': 'N/A',
      }),
      fields,
      [{ driver: null, computeCapability: null, usedBytes: null, mig: false }],
    ],
    [
      'the short list of an old driver',
      cardLine({ name: 'Tesla K80', 'memory.total': 11441, driver_version: '418.87' }, fewFields),
      fewFields,
      [{ name: 'Tesla K80', driver: '418.87', totalBytes: 11441 * MiB }],
    ],
    ['windows line ends', `${h200}\r\n`, fields, [{ index: 0, mig: false }]],
    ['a card without memory cannot be used', cardLine({ 'memory.total': '[N/A]' }), fields, []],
    ['a card that is lost cannot be used', cardLine({ index: '[GPU is lost]' }), fields, []],
    ['a line with another number of values', '0, GPU-1, NVIDIA X', fields, []],
    ['nothing', '', fields, []],
    ['noise', 'Failed to initialize NVML: Driver/library version mismatch', fields, []],
    ['MIG on', cardLine({ 'mig.mode.current': 'Enabled' }), fields, [{ mig: true }]],
  ]
  test.each(cases)('%s', (_name, csv, of, expected) => {
    expect(parseCards(csv, of)).toMatchObject(expected)
    expect(parseCards(csv, of)).toHaveLength(expected.length)
  })
})

describe('readings of a GPU', () => {
  const all = { utilization: 0.87, temperatureCelsius: 64, powerWatts: 412.31, powerLimitWatts: 700 }
  const values = {
    'utilization.gpu': '87',
    'temperature.gpu': '64',
    'power.draw': '412.31',
    'power.limit': '700.00',
  }
  const cases: [name: string, line: string, of: typeof fields | typeof fewFields, expected: object][] = [
    ['all', cardLine(values), fields, all],
    ['with odd spacing', cardLine(values).replaceAll(', ', '  ,\t'), fields, all],
    ['the short list of an old driver', cardLine(values, fewFields), fewFields, all],
    ['idle', cardLine({ ...values, 'utilization.gpu': '0' }), fields, { ...all, utilization: 0 }],
    [
      'power that the card does not measure',
      cardLine({ ...values, 'power.draw': '[N/A]', 'power.limit': '[Not Supported]' }),
      fields,
      { ...all, powerWatts: null, powerLimitWatts: null },
    ],
    [
      'values without permission, or with an error',
      cardLine({ ...values, 'utilization.gpu': '[Insufficient Permissions]', 'temperature.gpu': '[Unknown Error]' }),
      fields,
      { ...all, utilization: null, temperatureCelsius: null },
    ],
    [
      'unknown words, and a utilization above 100',
      cardLine({ 'utilization.gpu': '101', 'temperature.gpu': '[GPU requires reset]', 'power.draw': 'ERR!' }),
      fields,
      { utilization: 1, temperatureCelsius: null, powerWatts: null, powerLimitWatts: 700 },
    ],
  ]
  test.each(cases)('%s', (_name, line, of, expected) => {
    expect(parseCards(line, of)).toMatchObject([{ totalBytes: 143771 * MiB, readings: expected }])
  })

  test('two GPUs have their own readings', () => {
    const lines = `${cardLine(values)}\n${cardLine({ index: 1, 'temperature.gpu': 30 })}`
    expect(parseCards(lines, fields).map(({ readings }) => readings.temperatureCelsius)).toEqual([64, 30])
  })
})

describe('meaning of a run', () => {
  const run = (of: Partial<ProgramRun>): ProgramRun => ({ exitCode: 0, timedOut: false, stdout: '', stderr: '', ...of })
  const cases: [name: string, run: ProgramRun, expected: object | null][] = [
    ['cards', run({ stdout: h200 }), null],
    ['not installed', run({ exitCode: undefined, errorCode: 'ENOENT' }), { broken: false, retryWithFewFields: false }],
    ['not executable', run({ exitCode: undefined, errorCode: 'EACCES' }), { broken: true }],
    ['hanging driver', run({ exitCode: undefined, timedOut: true }), { broken: true }],
    ['exit 6: no cards', run({ exitCode: 6, stdout: 'No devices were found' }), { broken: false }],
    ['no cards, but exit 0', run({ stdout: 'No devices were found' }), { broken: false }],
    [
      'exit 9: driver',
      run({ exitCode: 9, stderr: "NVIDIA-SMI has failed because it couldn't communicate" }),
      { broken: true },
    ],
    [
      'exit 2: unknown field',
      run({ exitCode: 2, stdout: 'Field "mig.mode.current" is not a valid field' }),
      { retryWithFewFields: true },
    ],
    ['exit 12: no library', run({ exitCode: 12 }), { broken: true }],
    ['exit 15: off the bus', run({ exitCode: 15 }), { broken: true }],
    [
      'another',
      run({ exitCode: 255, stderr: 'What?\nmore' }),
      { broken: true, reason: 'nvidia-smi failed (255): What?.' },
    ],
  ]
  test.each(cases)('%s', (_name, of, expected) => {
    if (expected) expect(problemOf(of)).toMatchObject(expected)
    else expect(problemOf(of)).toBeNull()
  })
})

test('the query requests plain numbers', () => {
  expect(queryArguments(['index', 'name'])).toEqual(['--query-gpu=index,name', '--format=csv,noheader,nounits'])
})

const recordings = join(import.meta.dirname, 'recorded')
test.each(readdirSync(recordings))('what nvidia-smi printed on a real machine: %s', name => {
  const output = (command: string): ProgramRun => {
    const [, exitCode, stdout] = readFileSync(join(recordings, name, `${command}.txt`), 'utf8').match(
      /^exit (\d+)\n([^]*)$/,
    )!
    return { exitCode: Number(exitCode), timedOut: false, stdout: stdout!, stderr: '' }
  }
  expect(problemOf(output('nvidia-smi-query-gpu'))).toBeNull()
  expect(problemOf(output('nvidia-smi-unknown-field'))).toMatchObject({ retryWithFewFields: true })
  const listing = output('nvidia-smi-L').stdout
  expect(listing).toMatch(/^GPU 0: NVIDIA .* \(UUID: GPU-[0-]{36}\)$/m)
  expect(parseSlices(listing, parseSliceMemory(output('nvidia-smi-q-x').stdout))).toEqual([])
  expect(parseCardProcesses(output('nvidia-smi-query-compute-apps').stdout).size).toBe(0)
})
