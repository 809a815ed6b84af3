import { expect, test } from 'vitest'
import { sendSignal } from '../../../gpu/launcher/processes.ts'
import { full } from '../../_full.ts'
import { underLoad } from './_kills.ts'

test.skipIf(!full)('kills under load with an engine on this machine', { timeout: 240_000 }, async () => {
  const lab = await underLoad()
  await lab.replaced('engine', async id => {
    const pids = await lab.processesOf(id)
    expect(pids).not.toEqual([])
    for (const pid of pids) sendSignal(pid, 'SIGKILL')
  })
  await lab.restarted('infer')
  await lab.finish()
})
