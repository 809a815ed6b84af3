import { generationTasks } from '../../schemas/task.ts'
import { converse } from './converse.ts'
import { generatePath } from './generation-call.ts'
import type { GenerationProtocol } from './protocol.ts'

/** Our own protocol for engines that write files, described at `generatePath`. */
export const inferGeneration: GenerationProtocol = {
  name: 'infer-generation',
  paths: Object.fromEntries(generationTasks.map(task => [task, generatePath])),
  generate: (lease, { path }, call, signal, report) => converse(lease, path, call, signal, report),
}
