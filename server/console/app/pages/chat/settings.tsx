import { useMemo } from 'react'
import { branchOf } from '../../../../../core/conversations/markdown.ts'
import { TextArea } from '../../components/fields.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { TaskChoice } from '../playground/choices.ts'
import { TaskForm } from '../playground/form/task-form.tsx'
import { Samples } from '../playground/samples-view.tsx'
import type { OpenedConversation, OpenedState } from './conversation/opened.ts'
import { apiMessages } from './message/api-messages.ts'
import { PresetActions } from './presets/preset-actions.tsx'
import type { Presets } from './presets/use-presets.ts'
import type { Parameters } from './use-parameters.ts'

interface SettingsProps {
  opened: OpenedConversation
  state: OpenedState
  parameters: Parameters
  presets: Presets
  task: TaskChoice
  model: string
}

/** What the code asks before a person has written anything: a request without messages is refused. */
const firstMessages = [{ role: 'user', text: text.example }] as const

/** The system prompt and the parameters of a conversation, and its last request as code. */
export default function Settings({
  opened,
  state,
  parameters: { form, request },
  presets,
  task,
  model,
}: SettingsProps) {
  const { system, messages, current } = state
  const branch = branchOf(messages, current)
  const question = branch.slice(0, branch.findLastIndex(({ role }) => role !== 'assistant') + 1)
  // What was said stays as it is: it is written again when there is more of it, and not while an answer grows.
  const inputs = useMemo(
    () => ({ messages: apiMessages(system, question.length > 0 ? question : firstMessages), ...request }),
    [system, question.at(-1)?.id, request],
  )
  return (
    <div className="space-y-4">
      <TextArea
        label={text.system}
        hint={text.systemHint}
        rows={4}
        value={system}
        change={changed => opened.change({ system: changed })}
      />
      <TaskForm {...form} moreText={text.parameters} />
      <PresetActions presets={presets} settings={{ system, parameters: request }} />
      <Samples task={task} model={model} inputs={inputs} />
    </div>
  )
}
