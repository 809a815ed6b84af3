import { Template } from '@huggingface/jinja'
import type { GgufHeader } from '../../../core/models/gguf-header.ts'
import { isFor, type Task, tasksBy } from '../../../core/schemas/task.ts'
import { architectures } from './architectures.ts'

/** Why the built-in engine cannot run a model, and what to do, as sentences. */
export interface LoadFault {
  why: string
  instead: string
}

/** Returns why the built-in engine cannot run a model for these tasks, by its header; undefined if it may. */
export function loadFault(
  { kind, architecture, diffusion, chatTemplate, causal }: GgufHeader,
  tasks: readonly Task[],
): LoadFault | undefined {
  if (kind !== 'model')
    return {
      why: `The file is of the kind '${kind}', which belongs to a model.`,
      instead: 'Name the file of the model.',
    }
  if (diffusion)
    return { why: 'The model generates images or videos, not text.', instead: 'It runs with the engine sd-server.' }
  if (!architectures.has(architecture))
    return {
      why: `The architecture '${architecture.slice(0, 64)}' is unknown to the llama.cpp of this infer.`,
      instead: 'A newer llama.cpp may know it, with the engine llama-server.',
    }
  if (!isFor(tasks, 'chat', 'complete')) return undefined
  if (!causal)
    return {
      why: 'The model is an encoder and generates no text.',
      instead: `It runs with the task ${tasksBy('embed').join(' or ')}.`,
    }
  const fault = isFor(tasks, 'chat') && chatTemplate !== null ? templateFault(chatTemplate) : undefined
  return fault === undefined
    ? undefined
    : {
        why: `The chat template of the model is not valid: ${fault}.`,
        instead: `Without chats it runs, with the task ${tasksBy('complete').join(' or ')}.`,
      }
}

/** Returns why the text is not a Jinja template, without a full stop; undefined if it is one. */
function templateFault(source: string): string | undefined {
  try {
    void new Template(source)
    return undefined
  } catch (thrown) {
    return (thrown as Error).message.replace(/\.$/, '').slice(0, 300)
  }
}
