import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { comfyuiFolder } from '../../gpu/presets/comfyui.ts'
import { localDirectory } from '../client/find-server.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { environmentKinds } from './environment-kinds.ts'
import { requireOneVersion, requireTorchChoice, withIndex, withTorch, withVersions } from './environment-options.ts'
import { versionFields } from './installed-environments.ts'

/** `infer engine setup comfyui`: installs ComfyUI from its repository, and its libraries. */
export function defineSetupComfyui(setup: Command, terminal: Terminal): void {
  const kind = environmentKinds.comfyui
  const { version, license } = kind.source
  const command = withVersions(withTorch(withIndex(setup.command(kind.name))))
    .summary('install ComfyUI, which runs graphs for images and videos')
    .description(
      `Downloads ComfyUI ${version} (${license}) with git, by its commit, which git verifies, and installs the versions of its libraries with which infer was made. Starts it on the processor, without custom nodes and in the sandbox of engines, before it is put into use. Takes about ${sizeText(kind.bytes)} on the disk, and 3 GB with --cpu. Models and custom nodes are in comfyui of the data directory, and are kept when ComfyUI is installed again or removed.`,
    )
    .option('--from <repository>', 'a mirror of the Git repository, or a folder with a clone; default: GitHub')
    .option('--commit <hash>', 'another commit, as 40 hexadecimal digits', readCommit)
    .option('--requirements <file>', 'other libraries, with hashes as uv pip compile --generate-hashes writes them')
    .action(options => {
      requireTorchChoice(options)
      const { release, cuda, cpu, from, commit, requirements, indexUrl } = options
      requireOneVersion({ release, cuda, cpu, from, commit, requirements, indexUrl })
      const dataDir = localDirectory(command, options.dataDir)
      return interruptible(terminal, async signal => {
        const { installShown, printInstalled } = await import('./install-shown.ts')
        const installed = await installShown(kind, { ...options, dataDir }, terminal, signal)
        const { folder, program } = installed
        const files = comfyuiFolder(dataDir)
        if (options.json)
          return terminal.json({
            environment: { name: kind.name, path: folder, ...versionFields(installed) },
            ...program,
            files,
          })
        for (const sentence of program!.warnings) terminal.warn(sentence)
        terminal.print(
          `ComfyUI ${printable(program!.version ?? program!.commit)} is installed. It was started on the processor and answered; no image was made.`,
        )
        await printInstalled(kind, installed, terminal)
        terminal.print(`Put models into ${printable(files)}/models. Then add a graph: infer model add comfyui:<file>`)
      })
    })
  withExamples(command, [
    ['infer engine setup comfyui', 'install, or replace by the version of this infer'],
    ['infer engine setup comfyui --cuda 12.8', 'for a driver of CUDA 12.8'],
    ['infer engine setup comfyui --from https://git.example.com/mirrors/ComfyUI', 'from a mirror'],
  ])
}

function readCommit(text: string): string {
  if (!/^[0-9a-f]{40}$/.test(text)) throw new InvalidArgumentError('Write all 40 hexadecimal digits of the commit.')
  return text
}
