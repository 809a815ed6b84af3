import { type Command, Option } from '@commander-js/extra-typings'
import { type GpuBackend, type GpuPackage, gpuBackends } from '../../gpu/engines/gguf/gpu-packages.ts'
import { localDirectory } from '../client/find-server.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readUrl } from './environment-options.ts'
import { defineUpdateReleases } from './releases/define-releases.ts'
import { defineUpdateEnvironments } from './update-environment.ts'

export interface SetupGpuOptions extends CommonOptions {
  backend?: GpuBackend | 'auto'
  downloadOnly?: string
  from?: string
  npmRegistry?: string
  indexUrl?: string
  yes?: boolean
  dryRun?: boolean
  /** Prints the progress as JSON; given by the server. */
  events?: boolean
  /** The packages of the backend, instead of those that infer knows; for tests. */
  packages?: readonly GpuPackage[]
}

/** `infer engine setup gpu`: downloads the backend with which the built-in engine uses the GPUs. */
export function defineSetupGpu(gpu: Command, terminal: Terminal): void {
  withCommon(gpu)
    .summary('let the built-in engine use the GPUs')
    .description(
      'Downloads the backend of llama.cpp that suits the GPUs and their driver, with the libraries of CUDA that it needs, into backends of the data directory (or INFER_BACKENDS_DIR), and computes with it. Shows size, license and source first. Needs neither npm nor the CUDA toolkit. An interrupted download is continued by the same command; a running server uses the backend without a restart.',
    )
    .addOption(
      new Option('--backend <name>', 'cuda (CUDA 13), cuda-12 (older drivers and cards), vulkan (small; any maker)')
        .choices(['auto', ...gpuBackends])
        .default('auto' as const),
    )
    .option('--download-only <folder>', 'only download to this folder, for a machine without a network')
    .option('--from <folder>', 'install from a folder that --download-only has filled; nothing is downloaded')
    .option('--npm-registry <url>', 'registry of npm; default: npm_config_registry, else registry.npmjs.org', readUrl)
    .option(
      '--index-url <url>',
      'Python package index; default: that of INFER_PYPI_INDEX, uv and pip, else PyPI',
      readUrl,
    )
    .option('--dry-run', 'only show what would be downloaded')
    .option('-y, --yes', 'do not ask, and accept the licenses')
    .addOption(new Option('--events', 'print the progress as JSON, one object per line').hideHelp())
    .action(async options => {
      const dataDir = localDirectory(gpu, options.dataDir)
      const { setUpGpu } = await import('./install-gpu-backend.ts')
      await interruptible(terminal, signal => setUpGpu({ ...options, dataDir }, terminal, signal))
    })
  withExamples(gpu, [
    ['infer engine setup gpu', 'choose by the GPUs of this machine, and ask'],
    ['infer engine setup gpu --dry-run', 'only show what this machine needs'],
    ['infer engine setup gpu --backend vulkan', 'the small backend, for GPUs of any maker'],
    ['infer engine setup gpu --backend cuda --download-only usb', 'on a machine with a network'],
    ['infer engine setup gpu --from usb', 'on the machine without'],
  ])
}

/** `infer engine update`: replaces installed backends and engines while they serve. */
export function defineUpdate(command: Command, terminal: Terminal): void {
  command
    .summary('replace installed backends and engines by newer ones')
    .description(
      'Replaces the backends for GPUs by the versions that this infer was tested with, llama-server and sd-server by their latest release, and Python environments by the versions with which this infer was made, while they serve.',
    )
  const gpu = withCommon(command.command('gpu'))
    .summary('the backends for GPUs')
    .description(
      'Replaces the backends for GPUs that infer engine list shows as outdated or incomplete. Running engines keep the old one until their next load.',
    )
    .option('--check', 'only say what would change')
    .option('-y, --yes', 'do not ask, and accept the licenses')
    .action(async options => {
      const dataDir = localDirectory(gpu, options.dataDir)
      const { updateGpu } = await import('./install-gpu-backend.ts')
      await interruptible(terminal, signal => updateGpu({ ...options, dataDir }, terminal, signal))
    })
  withExamples(gpu, [
    ['infer engine update gpu --check', 'what would change'],
    ['infer engine update gpu', 'after an update of infer'],
  ])
  defineUpdateReleases(command, terminal)
  defineUpdateEnvironments(command, terminal)
  withExamples(command, [
    ['infer engine update gpu', 'after an update of infer'],
    ['infer engine update llama-server', 'the latest release of llama.cpp'],
    ['infer engine update vllm --check', 'what would change, without a change'],
  ])
}
