import type { Task } from '../../core/schemas/task.ts'
import { shellWord } from '../serve/try-next.ts'

/** Commands to try a model, by task; the first task that the model has is used, and `infer model test` if none is. */
const tries: Partial<Record<Task, (model: string) => string>> = {
  'std/chat-completion': model => `infer run ${model} "Hello"`,
  'std/completion': model => `infer run ${model} "Hello"`,
  'std/embeddings': model => `infer embed ${model} "Hello"`,
  'std/rerank': model => `infer rerank ${model} "a question" "an answer" "something else"`,
}

/** Returns the command with which a user tries a model that does these tasks. */
export function tryCommand(id: string, can: readonly Task[]): string {
  const task = (Object.keys(tries) as Task[]).find(one => can.includes(one))
  return task ? tries[task]!(shellWord(id)) : `infer model test ${shellWord(id)}`
}
