import { useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import { announce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { loaded } from '../../components/loaded.tsx'
import { Notice } from '../../components/page.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { ModelChoice as Model, TaskChoice } from '../playground/choices.ts'
import { useAnswerers } from './answerers.ts'
import { withStoredContent } from './attachments/stored-content.ts'
import { useAttachments } from './attachments/use-attachments.ts'
import { Composer } from './composer.tsx'
import type { OpenedConversation } from './conversation/opened.ts'
import { showing } from './conversation/registry.ts'
import type { TreeMessage } from './conversation/tree.ts'
import { Heading, type HeadingProps } from './heading.tsx'
import type { Message } from './message/message.ts'
import { Messages } from './messages.tsx'
import { ModelChoice } from './model-choice.tsx'
import { PresetChoice } from './presets/preset-choice.tsx'
import { usePresets } from './presets/use-presets.ts'
import { useParameters } from './use-parameters.ts'

const Settings = loaded(() => import('./settings.tsx'))

interface OpenedViewProps extends Pick<HeadingProps, 'removed' | 'token' | 'showList'> {
  opened: OpenedConversation
  task: TaskChoice
  able: readonly Model[]
  /** Called with the id when the conversation is kept first. */
  kept: (id: string) => void
}

/** One conversation: its messages, and where the next is written. */
export function OpenedView({ opened, task, able, kept, ...heading }: OpenedViewProps) {
  const state = useSyncExternalStore(opened.watch, opened.state)
  useEffect(() => showing(opened), [opened])
  const { id, failure, growing } = state
  useEffect(() => {
    if (id !== undefined) kept(id)
  }, [id])
  const [hasSettings, showSettings] = useState(false)
  const parameters = useParameters(task, opened)
  const presets = usePresets(({ system, parameters: fields }) => {
    opened.change({ system })
    parameters.replace(fields)
  })
  const choice = useAnswerers(able, state)
  const { models } = choice
  const attachments = useAttachments(
    models.map(({ features }) => features[task.id] ?? []),
    id,
  )
  const answerers = { path: task.path!, models }

  /** Whether the request can be sent; otherwise what is wrong with it is shown. */
  const isReady = (): boolean => {
    const ready = parameters.check()
    if (!ready) showSettings(true)
    return ready
  }
  /** Whether the request can be sent, once what the conversation began with is stored. */
  const prepare = async (): Promise<boolean> => {
    if (!isReady()) return false
    if (opened.state().id !== undefined) return true
    try {
      opened.replace(await withStoredContent(opened.state().messages))
      return true
    } catch (thrown) {
      announce('bad', text.notSent((thrown as Error).message))
      return false
    }
  }
  const ask = async (said: readonly Message[], after?: string | null): Promise<boolean> => {
    if (!(await prepare())) return false
    opened.ask(said, answerers, after)
    return true
  }
  const again = async (answer: TreeMessage): Promise<void> => {
    if (await prepare()) opened.again(answer, answerers)
  }
  const currencyOf = useCallback((model?: string) => able.find(one => one.id === model)?.currency ?? '', [able])

  return (
    <div
      {...(attachments.isAllowed ? attachments.dropProps : {})}
      className={`flex min-h-0 min-w-0 flex-1 flex-col gap-3 rounded-lg ${attachments.isOver ? 'outline-accent outline-2 outline-dashed outline-offset-4' : ''}`}
    >
      <Heading {...heading} opened={opened} state={state} settings={hasSettings} showSettings={showSettings} />
      <ModelChoice able={able} choice={choice}>
        <PresetChoice presets={presets} />
      </ModelChoice>
      {failure && (
        <Notice kind="warning">
          <span className="min-w-0 flex-1">{text.notKept(failure.message)}</span>
          <Button small onClick={() => void opened.keep()} label={text.keepAgain} />
        </Notice>
      )}
      <div className="flex min-h-0 flex-1 gap-6">
        <div className={`min-h-0 min-w-0 flex-1 flex-col gap-3 ${hasSettings ? 'hidden lg:flex' : 'flex'}`}>
          <Messages opened={opened} state={state} models={models} currencyOf={currencyOf} ask={ask} again={again} />
          <div className="mx-auto w-full max-w-3xl">
            <Composer
              attachments={attachments}
              busy={growing.size > 0}
              send={message => ask([message])}
              stop={() => opened.stop()}
            />
          </div>
        </div>
        {hasSettings && (
          <aside
            aria-label={text.settings}
            className="bg-surface border-line w-full min-w-0 overflow-y-auto rounded-lg border p-4 lg:w-88 lg:shrink-0"
          >
            <Settings
              opened={opened}
              state={state}
              parameters={parameters}
              presets={presets}
              task={task}
              model={models[0]!.id}
            />
          </aside>
        )}
      </div>
    </div>
  )
}
