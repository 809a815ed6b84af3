import { describe, expect, test } from 'vitest'
import { cardProcesses, parseCardProcesses } from '../../../gpu/devices/nvidia-smi.ts'
import { installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'
import { temporary } from '../launcher/_launch.ts'

const MiB = 2 ** 20

describe('parseCardProcesses', () => {
  const cases: [name: string, csv: string, expected: [string, object[] | null][]][] = [
    ['no process', '', []],
    ['no process, as some drivers say it', 'No running processes found\n', []],
    [
      'two cards',
      'GPU-a, 41, /usr/bin/python3, 1024\nGPU-b, 42, VLLM::EngineCore, 90112\nGPU-a, 43, ./main, 0\n',
      [
        [
          'GPU-a',
          [
            { pid: 41, name: '/usr/bin/python3', bytes: 1024 * MiB },
            { pid: 43, name: './main', bytes: null },
          ],
        ],
        ['GPU-b', [{ pid: 42, name: 'VLLM::EngineCore', bytes: 90112 * MiB }]],
      ],
    ],
    [
      'names with commas and spaces',
      'GPU-a, 41, ray::Worker, rank 0, step 1, 12',
      [['GPU-a', [{ pid: 41, name: 'ray::Worker, rank 0, step 1', bytes: 12 * MiB }]]],
    ],
    [
      'values that the driver does not know',
      'GPU-a, 41, [Not Found], [N/A]\nGPU-b, 42, [Insufficient Permissions], [Insufficient Permissions]',
      [
        ['GPU-a', [{ pid: 41, name: null, bytes: null }]],
        ['GPU-b', [{ pid: 42, name: null, bytes: null }]],
      ],
    ],
    [
      'one unreadable row makes the processes of its card unknown',
      `GPU-a, 41, x, 1
GPU-a, [Insufficient Permissions], [Insufficient Permissions], [Insufficient Permissions]
GPU-a, 43, x, 1
GPU-b, 44, x, 1`,
      [
        ['GPU-a', null],
        ['GPU-b', [{ pid: 44, name: 'x', bytes: MiB }]],
      ],
    ],
    [
      'odd spacing and line ends',
      '  GPU-a ,41,  x  ,  7  \r\n\r\n',
      [['GPU-a', [{ pid: 41, name: 'x', bytes: 7 * MiB }]]],
    ],
    ['lines that are no rows', 'GPU-a, 41\nFailed to initialize NVML\n, , , \n', []],
  ]
  test.each(cases)('%s', (_name, csv, expected) => {
    expect([...parseCardProcesses(csv)]).toEqual(expected)
  })
})

test('a query that fails gives null', async () => {
  const PATH = temporary()
  expect(await cardProcesses({ environment: { PATH } })).toBeNull()
  installNvidiaSmi(PATH, { cards: ':', processes: 'echo "GPU-1, 7, x, 1"; exit 2' })
  expect(await cardProcesses({ environment: { PATH } })).toBeNull()
  installNvidiaSmi(PATH, { cards: ':', processes: 'echo "GPU-1, 7, x, 1"' })
  expect(await cardProcesses({ environment: { PATH } })).toEqual(
    new Map([['GPU-1', [{ pid: 7, name: 'x', bytes: MiB }]]]),
  )
})
