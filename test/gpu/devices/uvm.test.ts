import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeUvmDevice } from '../../../gpu/devices/uvm.ts'
import { temporary } from '../launcher/_launch.ts'

test('the device for unified memory is created where a driver exists and the device does not', async () => {
  const folder = temporary()
  const dev = join(folder, 'dev')
  mkdirSync(dev)
  const told = join(folder, 'told')
  writeFileSync(join(folder, 'nvidia-modprobe'), `#!/bin/sh\necho "$@" >>${told}\n: >${dev}/nvidia-uvm\n`, {
    mode: 0o755,
  })
  await makeUvmDevice(folder, dev)
  expect(existsSync(told)).toBe(false)
  writeFileSync(join(dev, 'nvidiactl'), '')
  await makeUvmDevice('/nowhere', dev)
  await makeUvmDevice(folder, dev)
  await makeUvmDevice(folder, dev)
  expect(readFileSync(told, 'utf8')).toBe('-u -c 0\n')
  rmSync(join(dev, 'nvidia-uvm'))
  writeFileSync(join(folder, 'nvidia-modprobe'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await makeUvmDevice(folder, dev)
})
