import { useCallback, useMemo, useState } from 'react'
import { playgroundText } from '../../../text/playground.ts'
import type { ModelChoice, TaskChoice } from '../choices.ts'
import { type Entered, enteredOf, fieldsOf, formRequest } from './fields.ts'

/** What a panel of the playground gets. */
export interface PanelProps {
  task: TaskChoice
  /** One, or two that are compared. */
  models: readonly ModelChoice[]
  /** Inputs of an earlier job, or a file to use. */
  initial: Record<string, unknown> | undefined
}

/** What a person has entered for a task, the request that it makes, and what is wrong with it. `without` never changes. */
export function useForm({ task, initial = {} }: PanelProps, ...without: readonly string[]) {
  const fields = useMemo(() => fieldsOf(task).filter(({ name }) => !without.includes(name)), [task])
  const [entered, setEntered] = useState<Entered>(() => enteredOf(fields, initial))
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({})
  const change = useCallback((name: string, value: unknown) => {
    setEntered(now => ({ ...now, [name]: value }))
    setErrors(now => {
      const { [name]: _, ...others } = now
      return others
    })
  }, [])
  const { request, errors: faults } = useMemo(() => formRequest(fields, entered), [fields, entered])
  return {
    /** For `TaskForm`. */
    form: { fields, entered, change, errors },
    request,
    setErrors,
    /** Shows what is wrong. Returns whether the request can be sent. */
    check: (): boolean => {
      const wrong = Object.entries(faults)
      setErrors(Object.fromEntries(wrong.map(([name, fault]) => [name, playgroundText.errors[fault]])))
      return wrong.length === 0
    },
  }
}
