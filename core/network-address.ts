import ipaddr from 'ipaddr.js'

/** A range that is not public and may be fetched from all the same. */
export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number]

const everyPublic6 = ipaddr.parseCIDR('2000::/3')
/** Azure answers its machines there with their credentials, on an address that looks public. */
const platform = '168.63.129.16'

/** Whether a text is one address, or a range in CIDR notation. */
export const isNetwork = (text: string): boolean =>
  isAddress(text) || ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)

/** Such a text as a range. */
export function networkOf(text: string): Network {
  if (!isAddress(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Whether an address lies in the public internet. Of IPv6 only what has been given out is public, and none of the forms
 * that carry an IPv4 address through a translator: where those lead to is not for us to know. What is no address is not
 * public either.
 */
export function isPublic(text: string): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' ? address.toString() !== platform : address.match(everyPublic6)
}

/** Whether an address lies in one of the networks. */
export function isWithin(text: string, networks: readonly Network[]): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.process(text)
  return networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

/** With four parts only: what a URL's parser or a resolver gives has no other form. Zones are no part of an address. */
function isAddress(text: string): boolean {
  return text.includes(':')
    ? !text.includes('%') && ipaddr.IPv6.isValid(text)
    : ipaddr.IPv4.isValidFourPartDecimal(text)
}
