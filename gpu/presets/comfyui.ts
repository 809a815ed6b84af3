import { dirname, isAbsolute, join } from 'node:path'
import { definePreset, noKey, oneAtATime } from './preset.ts'
import { inVersion, neededVersion, programOfVersion } from './released-program.ts'
import { comfyuiAbilities } from './routes.ts'

/** The program that `infer engine setup comfyui` writes. It gets the options of ComfyUI. */
export const comfyuiProgram = 'infer-comfyui'

/** The folder with the models and custom nodes of an installed ComfyUI. They outlive its versions. */
export const comfyuiFolder = (dataDir: string): string => join(dataDir, 'comfyui')

const ownFolder = comfyuiFolder('{data_directory}')

/**
 * ComfyUI 0.3.50 or later: that of `infer engine setup comfyui`, or one that the operator installed. One process runs one graph at a time; infer starts one for each
 * model. Its previews need `--preview-method`. Its output folder is the one that it shares with infer, where each job has
 * a folder of its own; all that it writes there is removed with the job. `--disable-metadata` keeps the graph out of the
 * images. Nodes of hosted services are off: they would send prompts away. Source: ComfyUI 0.33, tried and read.
 */
export const comfyui = definePreset({
  name: 'comfyui',
  installation: { program: comfyuiProgram, advice: 'Install it with: infer engine setup comfyui' },
  settings: ['engine_version'],
  environments: ({ command, engine_version }) => (command ? [] : inVersion(['comfyui'], engine_version)),
  programs({ command, engine_version }) {
    if (command) return []
    if (engine_version !== undefined) return [neededVersion('comfyui', comfyuiProgram, engine_version)]
    return [{ name: comfyuiProgram, environments: ['comfyui'], install: 'infer engine setup comfyui' }]
  },
  configurationFault(model) {
    if (!model.comfyui)
      return "it needs 'comfyui', which names the inputs of the graph. Run: infer model add comfyui:<file>"
    if (!model.source) return "it needs 'source', the file of the graph in API format."
    return oneAtATime(model, 'runs one graph')
  },
  slots: 1,
  sandbox: {
    level: 'files',
    reads: ({ command }) =>
      (command?.filter(part => isAbsolute(part)).map(part => dirname(part)) ?? [ownFolder]).flatMap(folder => [
        folder,
        join(folder, 'models'),
        join(folder, 'custom_nodes'),
      ]),
  },
  command: (model, { gpus }) => [
    model.command ?? [programOfVersion(comfyuiProgram, model.engine_version), '--base-directory', ownFolder],
    ['--listen', '127.0.0.1', '--port', '{port}'],
    ['--output-directory', '{outputs}', '--input-directory', '{outputs}'],
    ['--temp-directory', '{home}', '--user-directory', '{home}', '--database-url', 'sqlite:///:memory:'],
    ['--preview-method', 'auto', '--max-upload-size', '4096'],
    ['--disable-metadata', '--disable-api-nodes', '--disable-auto-launch'],
    gpus > 0 ? [] : '--cpu',
    model.args,
  ],
  key: noKey,
  healthPath: () => '/system_stats',
  runningPath: () => '/prompt',
  // aiohttp closes idle connections after 75 s.
  keepAliveMs: 60_000,
  abilities: model => comfyuiAbilities(model),
})
