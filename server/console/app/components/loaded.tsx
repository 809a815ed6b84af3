import { type ComponentType, type ReactNode, useEffect, useState } from 'react'
import { Loading } from './page.tsx'

/** A part of the console whose script is loaded when it is first drawn, or before with `load`. */
export type Loaded<Props extends object = object> = ComponentType<Props> & { load(): Promise<void> }

/**
 * Returns a component for the default export of a module. It shows `meanwhile` while it loads, and a failure at the next
 * boundary. Not React's `lazy`: what stood in its place would stay for at least 300 ms, however soon the script is there.
 */
export function loaded<Props extends object = object>(
  read: () => Promise<{ default: ComponentType<Props> }>,
  meanwhile: ReactNode = <Loading />,
): Loaded<Props> {
  let Content: ComponentType<Props> | undefined
  const load = async () => {
    Content ??= (await read()).default
  }
  function Part(props: Props) {
    const [Shown, show] = useState(() => Content)
    const [failure, fail] = useState<Error>()
    useEffect(() => {
      if (!Shown) load().then(() => show(() => Content), fail)
    }, [Shown])
    if (failure) throw failure
    return Shown ? <Shown {...props} /> : meanwhile
  }
  return Object.assign(Part, { load })
}
