import { expect, test } from 'vitest'
import { isInNetworks, isNetwork, isPublic, networkOf } from '../../core/network-address.ts'

test.each(['1.1.1.1', '93.184.216.34', '8.8.8.8', '2606:4700::1111', '2a00:1450::1', '::ffff:1.1.1.1'])(
  '%s is public',
  address => expect(isPublic(address)).toBe(true),
)

/** The registries of special addresses, and those of cloud platforms. */
test.each(
  [
    '0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254',
    '172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1',
    '192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1',
    '255.255.255.255 168.63.129.16 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:168.63.129.16 ::ffff:0:127.0.0.1',
    '64:ff9b::1.1.1.1 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:101:101::1',
    '3fff::1 4000::1 5f00::1 fc00::1 fd00::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1',
    'localhost 127.1 2130706433 0x7f000001 0177.0.0.1 1.1.1.1.1 1.1.1 not-an-address',
  ].flatMap(line => line.split(' ')),
)('%s is not', address => expect(isPublic(address)).toBe(false))

test('networks are addresses and ranges of one kind', () => {
  const networks = ['10.1.0.0/16', '192.168.7.7', 'fd00:1::/32'].map(networkOf)
  for (const address of ['10.1.2.3', '192.168.7.7', '::ffff:10.1.2.3', 'fd00:1::5'])
    expect([address, isInNetworks(address, networks)]).toEqual([address, true])
  for (const address of ['10.2.0.1', '192.168.7.8', 'fd00:2::5', '127.1', 'localhost', ''])
    expect([address, isInNetworks(address, networks)]).toEqual([address, false])
  for (const text of ['10.0.0.0/33', '10.0.0/8', 'localhost', '', '10.0.0.0/']) expect(isNetwork(text)).toBe(false)
})
