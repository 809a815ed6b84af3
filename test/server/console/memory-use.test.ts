import { expect, test } from 'vitest'
import { memoryUse } from '../../../server/console/app/pages/overview/memory-use.ts'

const process = (bytes: number | null, engine_id: string | null) => ({ pid: 1, name: 'x', bytes, engine_id })

test.each([
  ['nothing is measured: only what is reserved', { used: null, booked: 30, processes: null }, [0, 30, 0]],
  ['no process is known: engines use what is reserved', { used: 50, booked: 30, processes: null }, [30, 0, 20]],
  ['less is in use than reserved', { used: 10, booked: 30, processes: null }, [10, 20, 0]],
  [
    'the processes are known: other programs have the rest',
    { used: 70, booked: 30, processes: [process(25, 'wkr_1'), process(40, null)] },
    [25, 5, 45],
  ],
  [
    'engines use more than is reserved',
    { used: 45, booked: 30, processes: [process(40, 'wkr_1'), process(null, 'wkr_2')] },
    [40, 0, 5],
  ],
  ['the driver reports more than the device has', { used: 120, booked: 30, processes: null }, [30, 0, 70]],
] as const)('%s', (_, { used, booked, processes }, [own, reserved, foreign]) => {
  const device = { total_bytes: 100, used_bytes: used, booked_bytes: booked, processes: processes && [...processes] }
  expect(memoryUse(device)).toEqual({ own, reserved, foreign })
})
