import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { TaskChoice } from '../playground/choices.ts'
import { type Entered, enteredOf, fieldsOf, formRequest } from '../playground/form/fields.ts'
import { useErrors } from '../playground/form/use-errors.ts'
import type { OpenedConversation } from './conversation/opened.ts'

/** The parameters of a conversation as a person has typed them. Those that can be sent belong to the conversation. */
export function useParameters(task: TaskChoice, opened: OpenedConversation) {
  const fields = useMemo(() => fieldsOf(task).filter(({ name }) => name !== 'messages' && name !== 'n'), [task])
  const [entered, setEntered] = useState<Entered>(() => enteredOf(fields, opened.state().parameters))
  const { errors, setErrors, clear, check } = useErrors()
  const { request, errors: faults } = useMemo(() => formRequest(fields, entered), [fields, entered])
  const begun = useRef(request)
  useEffect(() => {
    if (request !== begun.current) opened.change({ parameters: request })
  }, [request])
  const change = useCallback((name: string, value: unknown) => {
    setEntered(now => ({ ...now, [name]: value }))
    clear(name)
  }, [])
  return {
    /** For the form. */
    form: { fields, entered, change, errors },
    request,
    /** Puts other parameters in their place. */
    replace: (parameters: Readonly<Record<string, unknown>>): void => {
      setEntered(enteredOf(fields, parameters))
      setErrors({})
    },
    /** Shows what is wrong. Returns whether the request can be sent. */
    check: (): boolean => check(faults),
  }
}
export type Parameters = ReturnType<typeof useParameters>
