import { dirname, isAbsolute, join } from 'node:path'
import { definePreset, noKey, oneAtATime } from './preset.ts'
import { comfyuiAbilities } from './routes.ts'

/**
 * ComfyUI 0.3.50 or later, installed by the operator. One process runs one graph at a time; infer starts one for each
 * model. Its previews need `--preview-method`. Its output folder is the one that it shares with infer, where each job has
 * a folder of its own; all that it writes there is removed with the job. `--disable-metadata` keeps the graph out of the
 * images. Nodes of hosted services are off: they would send prompts away. Source: ComfyUI 0.33, tried and read.
 */
export const comfyui = definePreset({
  name: 'comfyui',
  installation: { advice: "Install ComfyUI, and give its start as 'command' in infer.yaml." },
  configurationFault(model) {
    if (!model.comfyui)
      return "it needs 'comfyui', which names the inputs of the graph. Run: infer model add comfyui:<file>"
    if (!model.source) return "it needs 'source', the file of the graph in API format."
    if (!model.command)
      return "it needs 'command', how to start ComfyUI: the Python of its environment and its main.py. A ComfyUI that runs already is used with the engine 'remote' and its 'url'."
    return oneAtATime(model, 'runs one graph')
  },
  slots: 1,
  sandbox: {
    level: 'files',
    reads: ({ command = [] }) =>
      command
        .filter(part => isAbsolute(part))
        .map(part => dirname(part))
        .flatMap(folder => [folder, join(folder, 'models'), join(folder, 'custom_nodes')]),
  },
  command: (model, { gpus }) => [
    model.command ?? [],
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
