import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { amdCards } from '../../../gpu/devices/amd.ts'

const GiB = 2 ** 30

/** A /sys and a /usr/share with these cards: their files by PCI address; and the nodes of ROCm's topology. */
function machine(cards: Record<string, Record<string, string | number>>, nodes: (string | null)[], chips = '') {
  const root = mkdtempSync(join(tmpdir(), 'infer-amd-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const put = (path: string, text: string | number) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), `${text}\n`)
  }
  for (const [at, [pci, files]] of Object.entries(cards).entries()) {
    for (const [name, text] of Object.entries(files)) put(`sys/devices/${pci}/${name}`, text)
    mkdirSync(join(root, `sys/class/drm/card${at}`), { recursive: true })
    symlinkSync(join(root, `sys/devices/${pci}`), join(root, `sys/class/drm/card${at}/device`))
    mkdirSync(join(root, `sys/class/drm/card${at}-HDMI-A-1`), { recursive: true })
  }
  for (const [at, properties] of nodes.entries()) {
    const node = `sys/class/kfd/kfd/topology/nodes/${at}`
    put(`${node}/gpu_id`, properties === null ? 0 : 4711 + at)
    put(`${node}/properties`, properties ?? 'cpu_cores_count 16')
  }
  if (chips) put('share/libdrm/amdgpu.ids', chips)
  return { sys: join(root, 'sys'), share: join(root, 'share') }
}
const card = {
  vendor: '0x1002',
  device: '0x744c',
  revision: '0xc8',
  mem_info_vram_total: 24 * GiB,
  mem_info_vram_used: GiB,
}
const chips = '# List of AMDGPU IDs\n1.0.0\n744C,\tCC,\tAMD Radeon RX 7900 XT\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n'

test('an AMD card has its memory and readings from its driver, and its number from ROCm', async () => {
  const found = await amdCards(
    machine(
      {
        '0000:83:00.0': { ...card, product_name: 'AMD Instinct MI210' },
        '0000:03:00.0': {
          ...card,
          gpu_busy_percent: 50,
          'hwmon/hwmon3/temp1_input': 61_000,
          'hwmon/hwmon3/power1_average': 120_000_000,
          'hwmon/hwmon3/power1_cap': 355_000_000,
        },
        '0000:00:02.0': { vendor: '0x8086', device: '0x46a6' },
        '0000:c1:00.0': { vendor: '0x1002', device: '0x1234' },
      },
      // The processor, then the second card, then the first: bus 0x83 is 33536 in the location.
      [null, 'simd_count 96\nlocation_id 33536\ndomain 0', 'simd_count 96\nlocation_id 768\ndomain 0'],
      chips,
    ),
  )
  const shared = { kind: 'amd', totalBytes: 24 * GiB, usedBytes: GiB, cudaId: null }
  expect(found).toMatchObject([
    {
      ...shared,
      name: 'AMD Radeon RX 7900 XTX',
      pci: '0000:03:00.0',
      hipId: '1',
      utilization: 0.5,
      temperatureCelsius: 61,
      powerWatts: 120,
      powerLimitWatts: 355,
    },
    { ...shared, name: 'AMD Instinct MI210', pci: '0000:83:00.0', hipId: '0', utilization: null, powerWatts: null },
  ])
})

test('without ROCm and without a list of chips it is found too; nothing is found on a machine without one', async () => {
  const [one] = await amdCards(machine({ '0000:03:00.0': { ...card, revision: '0xff' } }, []))
  expect(one).toMatchObject({ name: 'AMD GPU 744c' })
  expect(one).not.toHaveProperty('hipId')
  expect(await amdCards({ sys: '/nonexistent' })).toEqual([])
})
