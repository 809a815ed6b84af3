import { Button } from '../../components/button.tsx'

interface RowActionsProps<Action extends string> {
  /** The actions in their order. */
  offered: readonly Action[]
  names: Readonly<Record<Action, string>>
  /** The one that cannot be undone. */
  danger: Action
  /** Names an action with the row that it is for, for screen readers. */
  labelOf: (name: string) => string
  act: (action: Action) => void
}

/** What can be done with the row of a table. */
export const RowActions = <Action extends string>({
  offered,
  names,
  danger,
  labelOf,
  act,
}: RowActionsProps<Action>) => (
  <span className="flex gap-1 max-md:flex-wrap max-md:justify-end">
    {offered.map(action => (
      <Button
        key={action}
        small
        danger={action === danger}
        aria-label={labelOf(names[action])}
        onClick={() => act(action)}
        label={names[action]}
      />
    ))}
  </span>
)
