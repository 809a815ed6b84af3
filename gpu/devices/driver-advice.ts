import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { optionalText } from '../../core/optional-file.ts'

const families = ['ubuntu', 'debian', 'rhel', 'arch', 'other'] as const

/** What decides how a driver is installed here. */
export interface LinuxSystem {
  family: (typeof families)[number]
  isContainer: boolean
}

const relatives: readonly [LinuxSystem['family'], RegExp][] = [
  ['ubuntu', /^(ubuntu|pop|linuxmint)$/],
  ['debian', /^debian$/],
  ['rhel', /^(rhel|fedora|centos|rocky|almalinux)$/],
  ['arch', /^(arch|manjaro)$/],
]

export function readLinuxSystem(root = '/'): LinuxSystem {
  const isContainer = ['.dockerenv', 'run/.containerenv'].some(name => existsSync(join(root, name)))
  return { family: familyOf(optionalText(join(root, 'etc/os-release')) ?? ''), isContainer }
}

/** The family of a distribution by the text of its os-release. Pure. */
export function familyOf(release: string): LinuxSystem['family'] {
  const value = (name: string) => new RegExp(`^${name}=["']?([^"'\\n]*)`, 'm').exec(release)?.[1] ?? ''
  for (const id of [value('ID'), ...value('ID_LIKE').split(' ')])
    for (const [family, names] of relatives) if (names.test(id)) return family
  return 'other'
}

/** How to install the driver of NVIDIA, as sentences. Pure. */
export function driverAdvice({ family, isContainer }: LinuxSystem): string {
  if (isContainer)
    return 'Install the driver and the NVIDIA Container Toolkit on the host, and start the container with the option --gpus all.'
  const how = {
    ubuntu: 'sudo ubuntu-drivers install',
    debian: 'enable contrib and non-free in the package sources, then: sudo apt install nvidia-driver',
    rhel: "add NVIDIA's package source (developer.download.nvidia.com/compute/cuda/repos), then: sudo dnf install nvidia-open",
    arch: 'sudo pacman -S nvidia-open nvidia-utils',
    other: 'see nvidia.com/drivers, or the documentation of your system',
  }[family]
  return `Install the driver: ${how}. Restart the machine; infer then finds the card by itself.`
}

/** How to install what Vulkan needs besides the kernel, as a sentence. Pure. */
export function vulkanAdvice({ family }: LinuxSystem): string {
  const how = {
    ubuntu: 'sudo apt install libvulkan1 mesa-vulkan-drivers',
    debian: 'sudo apt install libvulkan1 mesa-vulkan-drivers',
    rhel: 'sudo dnf install vulkan-loader mesa-vulkan-drivers',
    arch: 'sudo pacman -S vulkan-icd-loader vulkan-radeon vulkan-intel',
    other: 'the Vulkan loader, and the Vulkan driver of Mesa',
  }[family]
  return `Install the Vulkan driver of the card: ${how}.`
}
