import { stripAnsi } from 'consola/utils'
import { describe, expect, test } from 'vitest'
import type { Api } from '../../../cli/client/client.ts'
import { drawStatus, limitLines, memoryBar } from '../../../cli/status/draw.ts'
import { lineWidth, plainPaint } from '../../../cli/terminal/styled-line.ts'

const GiB = 2 ** 30
const idle = {
  reason: null,
  eta_seconds: null,
  slots: 0,
  busy: 0,
  waiting: 0,
  output_tokens_per_second: 0,
  input_tokens_per_second: 0,
}
const placed = { on: 'gpu', gpu_layers: null, layers: null, detail: 'on GPU 0', advice: null, longer_context: [] }
/** What is drawn of a status. */
const snapshot = {
  version: '0.1.0',
  time: 100_000,
  started_at: 100_000 - 7_500,
  requests: 5,
  jobs: { pending: 12, processing: 1 },
  limits: [],
  devices: [
    {
      id: 'gpu0',
      name: 'NVIDIA H200',
      kind: 'nvidia',
      total_bytes: 100 * GiB,
      used_bytes: 25 * GiB,
      booked_bytes: 50 * GiB,
    },
    { id: 'cpu', name: 'AMD EPYC', kind: 'cpu', total_bytes: 20 * GiB, used_bytes: null, booked_bytes: 0 },
  ],
  engines: [
    {
      id: 'wkr_1',
      model_id: 'llama-70b',
      state: 'ready',
      pid: 42,
      devices: ['gpu0'],
      placement: placed,
      memory_bytes: 40 * GiB,
      device_memory_bytes: [40 * GiB],
      slots: 4,
      busy: 3,
      started_at: 100_000 - 65,
      last_used_at: 99_990,
    },
    {
      id: 'wkr_2',
      model_id: 'qwen3-8b',
      state: 'starting',
      pid: null,
      devices: ['gpu0'],
      placement: placed,
      memory_bytes: 10 * GiB,
      device_memory_bytes: [10 * GiB],
      slots: 8,
      busy: 0,
      started_at: 99_990,
      last_used_at: 99_990,
    },
    {
      id: 'wkr_3',
      model_id: 'hosted',
      state: 'ready',
      pid: null,
      devices: [],
      placement: placed,
      memory_bytes: 0,
      device_memory_bytes: [],
      slots: 64,
      busy: 0,
      started_at: 90_000,
      last_used_at: 99_990,
    },
  ],
  models: [
    { ...idle, model_id: 'cold-one', status: 'cold' },
    {
      ...idle,
      model_id: 'llama-70b',
      status: 'warm',
      slots: 4,
      busy: 3,
      waiting: 7,
      output_tokens_per_second: 141.26,
      input_tokens_per_second: 12,
    },
    { ...idle, model_id: 'qwen3-8b', status: 'loading', eta_seconds: 20 },
    { ...idle, model_id: 'broken', status: 'unavailable', reason: 'Engine exited (3): CUDA out of memory' },
  ],
  waiting: [],
  left_devices: [],
} as unknown as Api['SystemStatus']
const lines = (width: number, height = 0, of = snapshot) =>
  drawStatus(of, 'http://127.0.0.1:8787', { width, height }, plainPaint)
const text = (width: number) => lines(width).join('\n')

test('durations are shown once one model has them', () => {
  const timed = { queue_wait_ms: 0.44, time_to_first_token_ms: 85.3, inter_token_latency_ms: 4.26, load_ms: 4_120 }
  const models = snapshot.models.map(model => (model.model_id === 'llama-70b' ? { ...model, ...timed } : model))
  const drawn = drawStatus({ ...snapshot, models }, 'http://127.0.0.1:8787', { width: 140, height: 40 }, plainPaint)
  const table = drawn.slice(drawn.indexOf('Models') + 1).map(line => stripAnsi(line).trimEnd())
  expect(table.slice(0, 2)).toEqual([
    'model      status       busy  waiting  tokens/s  prompt/s  first token  a token  queued   load  note',
    'llama-70b  warm          3/4        7       141      12.0        85 ms   4.3 ms  0.4 ms  4.1 s',
  ])
})

test.each([
  ['4 % more is usual', 41.6, null],
  ['more', 44.8, 'llama-70b: It uses 44.8 GiB, 12 % more than was reserved (40.0 GiB).'],
  ['less', 30, 'llama-70b: It uses 30.0 GiB, 25 % less than was reserved (40.0 GiB).'],
])('an engine that uses another amount of memory than was reserved: %s', (_rule, gigabytes, note) => {
  const memory = { booked_memory_bytes: 40 * GiB, used_memory_bytes: gigabytes * GiB }
  const engines = snapshot.engines.map((engine, at) => (at === 0 ? { ...engine, ...memory } : engine))
  const text = lines(140, 40, { ...snapshot, engines }).join('\n')
  if (note === null) expect(text).not.toContain('It uses')
  else expect(text).toContain(note)
})

test('what requests waited is shown beside what the order of arrival would have cost them', () => {
  const waits = { queue_ms: 4_120, reference_queue_ms: 12_300 }
  const models = snapshot.models.map(model => (model.model_id === 'llama-70b' ? { ...model, waits } : model))
  expect(lines(140, 40, { ...snapshot, models }).join('\n')).toMatch(/waited \(strict order\).*\n.* 4\.1 s \(12\.3 s\)/)
})

test('waiting requests are shown with the reason, the first five of them', () => {
  const waiting = Array.from({ length: 7 }, (_, at) => ({
    id: `job_${at}`,
    model_id: 'llama-70b',
    waited_ms: 12_300,
    queue_position: at,
    waiting_for: { detail: `${at} jobs go before it.`, eta_seconds: at === 0 ? null : 90 },
  })) as unknown as (typeof snapshot)['waiting']
  const drawn = lines(120, 0, { ...snapshot, waiting })
  expect(drawn.slice(drawn.indexOf('Waiting requests'))).toEqual([
    'Waiting requests',
    '  job_0  llama-70b  12 s  0 jobs go before it.',
    ...[1, 2, 3, 4].map(at => `  job_${at}  llama-70b  12 s  ${at} jobs go before it. About 1 min left.`),
    '  and 2 more',
  ])
})

test('layers on GPUs are shown, and why GPUs are not used, once for all engines', () => {
  const without = {
    on: 'processor',
    gpu_layers: 0,
    layers: 37,
    advice: 'infer engine setup gpu',
    longer_context: [] as string[],
  } as const
  const detail = 'on the processor: 2 GPUs are not used because of a test; run infer engine setup gpu'
  const [first, second] = snapshot.engines as [Api['EngineStatus'], Api['EngineStatus']]
  const engines = [
    { ...first, placement: { ...first.placement, gpu_layers: 81, layers: 81 } },
    { ...first, devices: ['cpu'], model_id: 'small', placement: { ...without, detail } },
    { ...second, devices: ['cpu'], placement: { ...without, detail } },
  ]
  const drawn = lines(100, 0, { ...snapshot, engines })
  expect(drawn[5]).toMatch(/llama-70b .* 81\/81 layers on GPUs {2}since/)
  const notes = drawn.slice(0, drawn.indexOf('Models')).join(' ').replaceAll(/\s+/g, ' ')
  expect(notes.endsWith(` since 10 s small, qwen3-8b: ${detail} `)).toBe(true)
})

test('a wide terminal shows everything', () => {
  expect(text(120)).toBe(
    [
      'infer 0.1.0  http://127.0.0.1:8787  up 2 h 5 min',
      '141 tokens/s  4 requests  1 job running, 12 waiting',
      '',
      'Devices',
      `gpu0 NVIDIA H200        ${'█'.repeat(10)}${'▒'.repeat(10)}${'░'.repeat(20)}  25.0 GiB used, 50.0 GiB booked, of 100 GiB`,
      '  llama-70b                    3/4 busy    40.0 GiB  since 1 min  pid 42',
      '  qwen3-8b                     loading     10.0 GiB  since 10 s',
      `cpu AMD EPYC            ${'░'.repeat(40)}  not measured, 0 B booked, of 20.0 GiB`,
      'elsewhere',
      '  hosted                       0/64 busy   since 2 h 46 min',
      '',
      'Models',
      'model      status       busy  waiting  tokens/s  prompt/s  note',
      'llama-70b  warm          3/4        7       141      12.0  ',
      'qwen3-8b   loading         -        0         -         -  about 20 s left',
      'broken     unavailable     -        0         -         -  Engine exited (3): CUDA out of memory',
      'cold-one   cold            -        0         -         -  ',
    ].join('\n'),
  )
})

describe('sensor values of a GPU', () => {
  const [card, cpu] = snapshot.devices as [Api['SystemStatus']['devices'][0], Api['SystemStatus']['devices'][0]]
  const reported = { utilization: 0.87, temperature_celsius: 64, power_watts: 412.31, power_limit_watts: 700 }
  const of = (name: string) => ({ ...snapshot, engines: [], devices: [{ ...card, name, ...reported }, cpu] })
  const devices = (width: number, name = card.name) => {
    const drawn = lines(width, 0, of(name))
    return drawn.slice(
      drawn.indexOf('Devices') + 1,
      drawn.findIndex(line => line.startsWith('cpu')),
    )
  }

  test('are beside its name where the bar has its own line', () => {
    expect(devices(79)[0]).toBe('gpu0 NVIDIA H200  87% utilization, 64 °C, 412 of 700 W')
    expect(devices(79)).toHaveLength(3)
  })

  test('have their own line below a bar beside the name, and where the name is long', () => {
    const own = '  87% utilization, 64 °C, 412 of 700 W'
    for (const width of [80, 120]) expect(devices(width)[1]).toBe(own)
    expect(devices(79, 'NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition')[3]).toBe(own)
  })

  test.each([20, 33, 52, 79, 80, 200])('make no line wider than %i columns', width => {
    expect(lines(width, 0, of(card.name)).filter(line => lineWidth(line) > width)).toEqual([])
  })
})

test.each([20, 24, 33, 40, 52, 64, 80, 100, 200])(
  'at %i columns no line is wider, and the most important values are shown',
  width => {
    const drawn = lines(width)
    expect(drawn.filter(line => lineWidth(line) > width)).toEqual([])
    expect(drawn.join('\n')).toMatch(/llama-70b +wa/)
    expect(drawn.some(line => line.includes('█') && line.includes('▒') && line.includes('░'))).toBe(true)
  },
)

test.each([3, 5, 10, 100])('at %i lines there are no more, and a notice says that some are missing', height => {
  const drawn = lines(80, height)
  expect(drawn.length).toBeLessThanOrEqual(height)
  expect(/… \d+ more lines/.test(drawn.at(-1)!)).toBe(drawn.length < lines(80).length)
})

test.each([40, 60, 80, 100, 120])('at %i columns the reason is shown why a model does not work', width => {
  expect(lines(width).join('\n')).toContain('Engine exited (3)')
})

test('an engine on two GPUs is shown below each with its share of it', () => {
  const [engine] = snapshot.engines
  const divided = { ...engine!, devices: ['gpu0', 'gpu1'], device_memory_bytes: [10 * GiB, 30 * GiB] }
  const cards = ['gpu0', 'gpu1'].map(id => ({ ...snapshot.devices[0]!, id }))
  const drawn = lines(100, 0, { ...snapshot, devices: cards, engines: [divided] })
  expect(drawn.filter(line => line.includes('3/4 busy'))).toEqual([
    expect.stringContaining('10.0 GiB'),
    expect.stringContaining('30.0 GiB'),
  ])
})

test('GPUs that are left to others are said', () => {
  const reason = 'gpu1 is left to others (CUDA_VISIBLE_DEVICES=0).'
  expect(lines(80, 0, { ...snapshot, left_devices: [{ id: 'gpu1', name: 'L4', reason }] })).toContain(reason)
})

test('without models it says how to add one', () => {
  expect(lines(80, 0, { ...snapshot, models: [] }).join('\n')).toContain('infer model add')
})

test('control characters in messages of an engine do not reach the terminal', () => {
  const evil = { ...snapshot.models[3]!, reason: '\u001b[2Jgone' }
  expect(lines(120, 0, { ...snapshot, models: [evil] }).join('\n')).not.toContain('\u001b')
})

describe('memoryBar', () => {
  const device = { id: 'a', name: 'a', kind: 'nvidia', total_bytes: 100, used_bytes: 0, booked_bytes: 0 }
  test.each<[used: number | null, booked: number, bar: string]>([
    [0, 0, '░░░░░░░░░░'],
    [50, 50, '█████░░░░░'],
    [20, 50, '██▒▒▒░░░░░'],
    [80, 10, '████████░░'],
    [null, 30, '▒▒▒░░░░░░░'],
    [1, 0, '█░░░░░░░░░'],
    [500, 500, '██████████'],
  ])('used %j and booked %j of 100: %s', (used_bytes, booked_bytes, bar) => {
    const drawn = memoryBar({ ...device, used_bytes, booked_bytes }, 10)
    expect(drawn.map(span => stripAnsi(span.text)).join('')).toBe(bar)
  })
})

test('limits are drawn with what is left of them; without limits there is no heading', () => {
  expect(limitLines([])).toEqual([])
  const lines = limitLines([
    { name: 'jobs_per_minute', limit_of: 'token', limit: 10, remaining: 0, reset_seconds: 60 },
    { name: 'stored_bytes', limit_of: 'organization', limit: 2 ** 30, remaining: 2 ** 29, reset_seconds: null },
  ])
  expect(lines.map(line => line.map(({ text }) => text).join(''))).toEqual([
    '',
    'Limits',
    '  submissions a minute   token         0 of 10 left  all again in 1 min',
    '  stored files           organization  512 MiB of 1.0 GiB left',
  ])
})

test('spend limits are drawn with what is held of them, and only where there is one', () => {
  const [period_start, period_end] = [Date.UTC(2026, 10, 1) / 1000, Date.UTC(2026, 11, 1) / 1000]
  const none = { monthly_limit: null, spent: 3, held: 0, remaining: null, period_start, period_end }
  const half = { monthly_limit: 10, spent: 4, held: 1, remaining: 5, period_start, period_end }
  const drawn = (spend: Parameters<typeof limitLines>[1]) =>
    limitLines([], spend).map(line => line.map(({ text }) => text).join(''))
  expect(drawn({ currency: 'EUR', organization: none, token: none })).toEqual([])
  expect(drawn({ currency: 'EUR', organization: half, token: { ...none, monthly_limit: 2, remaining: 0 } })).toEqual([
    '',
    'Limits',
    '  spending a month       organization  5.00 of 10.00 EUR left, 1.00 held by running work  all again on 2026-12-01',
    '  spending a month       token         0.00 of 2.00 EUR left  all again on 2026-12-01',
  ])
})
