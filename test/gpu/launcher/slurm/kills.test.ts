import { afterAll, expect, test } from 'vitest'
import { sendSignal } from '../../../../gpu/launcher/processes.ts'
import { full } from '../../../_full.ts'
import { underLoad } from '../_kills.ts'
import { noLab, startLab } from './_lab.ts'

const missing = full ? noLab : 'only in the whole suite'
const lab = missing === undefined ? await startLab() : undefined
afterAll(() => lab?.close(), 30_000)

test.skipIf(missing !== undefined)(
  `kills under load with an engine that is a Slurm job${missing ? ` (${missing})` : ''}`,
  { timeout: 400_000 },
  async () => {
    const slurm = lab!
    const server = await underLoad({
      pool: { kind: 'slurm', card_memory: '80GiB', orphan_grace: '30s' },
      env: { PATH: slurm.env.PATH, SLURM_CONF: slurm.env.SLURM_CONF },
      model: { devices: 1, memory: '60GiB' },
    })
    const jobIdOf = (engineId: string): string => slurm.jobOf(`${engineId}-1`)![0]!

    await server.replaced('engine', async id => {
      const pids = await server.processesOf(id)
      expect(pids).not.toEqual([])
      for (const pid of pids) sendSignal(pid, 'SIGKILL')
    })
    let failed = ''
    await server.replaced('node', async id => {
      failed = slurm.run('squeue', '-h', '-j', jobIdOf(id), '-o', '%N')
      await slurm.failNode(failed)
    })
    slurm.node(failed)
    await server.kept('slurmctld', async id => {
      await slurm.saved(jobIdOf(id))
      await slurm.kill('slurmctld', 'SIGKILL')
      slurm.controller()
    })
    await server.restarted('infer')
    await server.finish()
  },
)
