import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { fewFields } from '../../../gpu/devices/nvidia.ts'
import { discover } from '../../../gpu/devices/nvidia-smi.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

const made: string[] = []
afterAll(() => made.forEach(directory => rmSync(directory, { recursive: true, force: true })))

/** A PATH whose nvidia-smi is this shell text; the machine's own tools stay reachable through absolute paths. */
function pathWith(script: string | undefined): string {
  const directory = mkdtempSync(join(tmpdir(), 'infer-smi-'))
  made.push(directory)
  if (script !== undefined) {
    writeFileSync(join(directory, 'nvidia-smi'), `#!/bin/sh\n${script}\n`)
    chmodSync(join(directory, 'nvidia-smi'), 0o755)
  }
  return directory
}
const look = (script: string | undefined, timeoutMs = 10_000) =>
  discover({ environment: { PATH: pathWith(script) }, timeoutMs })

const xml = `<nvidia_smi_log><gpu id="00000000:55:00.0"><mig_devices><mig_device><index>0</index>
<fb_memory_usage><total>4864 MiB</total><used>13 MiB</used></fb_memory_usage></mig_device></mig_devices>
<uuid>GPU-1</uuid></gpu></nvidia_smi_log>`
const two = `echo '${cardLine()}'
echo '${cardLine({ index: 1, uuid: 'GPU-2', 'memory.used': 900 })}'`

test('GPUs are found through the nvidia-smi of the given PATH', async () => {
  const found = await look(two)
  expect(found).toMatchObject({ reason: null, broken: false })
  expect(found.devices.map(({ id, cudaId, usedBytes }) => [id, cudaId, usedBytes])).toEqual([
    ['gpu0', '0', 4 * 2 ** 20],
    ['gpu1', '1', 900 * 2 ** 20],
  ])
})

test('an old driver without one of the fields is queried for the short list', async () => {
  const found = await look(`case "$1" in
    *mig.mode*) echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2;;
    *) echo '${cardLine({ name: 'Tesla K80' }, fewFields)}';;
  esac`)
  expect(found.devices).toMatchObject([{ id: 'gpu0', name: 'Tesla K80' }])
})

test.each([
  ['with the memory that the XML has', `echo '${xml}'`, 4864 * 2 ** 20, 13 * 2 ** 20],
  ['with an estimate where there is no XML', 'exit 3', Math.floor(5 * 2 ** 30 * 0.95), null],
])('MIG slices are listed %s', async (_name, answer, totalBytes, usedBytes) => {
  const PATH = pathWith(undefined)
  installNvidiaSmi(PATH, {
    cards: `echo '${cardLine({ name: 'A100', 'mig.mode.current': 'Enabled' })}'`,
    listing: `echo 'GPU 0: A100 (UUID: GPU-1)'; echo '  MIG 1g.5gb     Device  0: (UUID: MIG-7)'`,
    xml: answer,
  })
  const found = await discover({ environment: { PATH } })
  expect(found.devices).toMatchObject([
    { id: 'gpu0.0', cudaId: 'MIG-7', name: 'A100 MIG 1g.5gb', totalBytes, usedBytes },
  ])
})

const nothing: [name: string, script: string | undefined, broken: boolean, reason: RegExp][] = [
  ['no nvidia-smi at all', undefined, false, /not installed/],
  ['a driver that is not loaded', 'echo "couldn\'t communicate with the NVIDIA driver" >&2; exit 9', true, /driver/],
  ['a machine without cards', 'echo "No devices were found"; exit 6', false, /no card/],
  ['garbage with exit 0', 'echo "<html>"', true, /no card/],
  ['a crash', 'kill -SEGV $$', true, /failed/],
]
test.each(nothing)('%s gives no devices and the reason', async (_name, script, broken, reason) => {
  const found = await look(script)
  expect(found.devices).toEqual([])
  expect(found.broken).toBe(broken)
  expect(found.reason).toMatch(reason)
})

test('a hanging tool is aborted', async () => {
  const found = await look('exec /bin/sleep 600', 300)
  expect(found).toMatchObject({ devices: [], broken: true })
  expect(found.reason).toMatch(/does not answer/)
})
