import { chmodSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sendSignal } from '../../../../gpu/launcher/processes.ts'
import { full } from '../../../_full.ts'
import { underLoad } from '../_kills.ts'
import { noSshServer, openBox } from './_box.ts'

const missing = full ? noSshServer() : 'only in the whole suite'
const box = missing === undefined ? await openBox() : undefined
afterAll(async () => {
  if (!box) return
  for (const pid of processesOfBox()) sendSignal(pid, 'SIGKILL')
  await box.close()
})

/** Everything of infer on the machine: the agent, the keeper, and the engines. The server has the folder in its own PATH. */
function processesOfBox(): number[] {
  const at = `${box!.cache}/infer/pools`
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      const isThere =
        words[0] !== 'ssh' &&
        (readlinkSync(`/proc/${name}/cwd`).startsWith(box!.cache) ||
          readFileSync(`/proc/${name}/environ`, 'utf8').includes(`XDG_CACHE_HOME=${box!.cache}`) ||
          words.some(word => word.includes(at)))
      return isThere ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

test.skipIf(missing !== undefined)(
  `kills under load with an engine on a machine that is reached by ssh${missing ? ` (${missing})` : ''}`,
  { timeout: 400_000 },
  async () => {
    const ssh = join(box!.folder, 'ssh')
    const [program, ...options] = box!.ssh
    writeFileSync(ssh, `#!/bin/sh\nPATH='${process.env.PATH}' exec ${program} ${options.join(' ')} "$@"\n`)
    chmodSync(ssh, 0o755)
    const { host, port, identity_file } = box!.settings
    const lab = await underLoad({
      pool: { kind: 'ssh', host, port, identity_file },
      env: { PATH: `${box!.folder}:${process.env.PATH}` },
    })
    const kill = (pids: readonly number[]) => {
      expect(pids).not.toEqual([])
      for (const pid of pids) sendSignal(pid, 'SIGKILL')
    }
    await lab.replaced('engine', async id => kill(await lab.processesOf(id)))
    await lab.kept('connection', () => box!.cut())
    await lab.replaced('machine', async () => {
      kill(processesOfBox())
      await box!.cut()
    })
    await lab.kept('agent', async () => kill(await box!.agents()))
    await lab.restarted('infer')
    await lab.finish()
  },
)
