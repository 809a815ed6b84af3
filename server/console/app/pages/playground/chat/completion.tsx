import { Play, Square } from 'lucide-react'
import { type FormEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Empty, Section } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import type { ModelChoice, TaskChoice } from '../choices.ts'
import { type Entered, enteredOf, fieldsOf, formRequest } from '../form/fields.ts'
import { TaskForm } from '../form/task-form.tsx'
import { Samples } from '../samples-view.tsx'
import { emptyAnswer, type Message } from './conversation.ts'
import { MessageView } from './message-view.tsx'
import { streamAnswer } from './stream-answer.ts'

/** Continues a text with one model or with two, as they write it. */
export function Completion({
  task,
  models,
  initial,
}: {
  task: TaskChoice
  models: readonly ModelChoice[]
  initial: Record<string, unknown> | undefined
}) {
  const fields = useMemo(() => fieldsOf(task).filter(({ name }) => name !== 'n' && name !== 'best_of'), [task])
  const [entered, setEntered] = useState<Entered>(() => enteredOf(fields, initial ?? {}))
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [answers, setAnswers] = useState<readonly Message[]>([])
  const [busy, setBusy] = useState(false)
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])
  const change = useCallback((name: string, value: unknown) => {
    setEntered(now => ({ ...now, [name]: value }))
    setErrors({})
  }, [])
  const { request, errors: faults } = useMemo(() => formRequest(fields, entered), [fields, entered])

  async function run(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (Object.keys(faults).length > 0)
      return setErrors(
        Object.fromEntries(Object.entries(faults).map(([name, fault]) => [name, playgroundText.errors[fault]])),
      )
    const { signal } = (stop.current = new AbortController())
    setBusy(true)
    setAnswers(models.map(() => emptyAnswer))
    const set = (at: number) => (answer: Message) => setAnswers(now => now.with(at, answer))
    await Promise.all(
      models.map(({ id }, at) =>
        streamAnswer(task.path!, { model: id, ...request }, set(at), signal)
          .catch((failure: Error): Message => ({ ...emptyAnswer, failure: failure.message }))
          .then(set(at)),
      ),
    )
    setBusy(false)
  }

  return (
    <div className="grid gap-6 lg:grid-cols-2">
      <Section title={playgroundText.request}>
        <form
          noValidate
          onSubmit={event => void run(event)}
          className="bg-surface border-line space-y-4 rounded-lg border p-4"
        >
          <TaskForm fields={fields} entered={entered} change={change} errors={errors} />
          {busy ? (
            // The second press of a double click on the button that stood here does not stop the answer.
            <Button icon={Square} onClick={event => event.detail < 2 && stop.current?.abort()}>
              {playgroundText.chat.stop}
            </Button>
          ) : (
            <Button primary type="submit" icon={Play}>
              {models.length > 1 ? playgroundText.runTwo : playgroundText.run}
            </Button>
          )}
        </form>
      </Section>
      <div className="min-w-0">
        <Section title={playgroundText.result}>
          {answers.length === 0 && <Empty title={playgroundText.none} />}
          <div className={`grid gap-3 ${answers.length > 1 ? 'md:grid-cols-2' : ''}`}>
            {answers.slice(0, models.length).map((answer, at) => (
              <div key={at} className="bg-surface border-line min-w-0 rounded-lg border">
                <MessageView
                  message={answer}
                  model={models[at]!.id}
                  currency={models[at]!.currency}
                  growing={busy && answer.figures?.outputTokens === undefined && !answer.failure}
                />
              </div>
            ))}
          </div>
        </Section>
        <Samples task={task} model={models[0]!.id} inputs={request} />
      </div>
    </div>
  )
}
